package schedule

import (
	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// slot is where the open list's tasks read a slab's weights.
func (b *builder) slot(s int) plan.BufID {
	if b.list >= plan.Prefill {
		return b.genWeight[s]
	}
	return b.weight[s]
}

// visitReads reports whether a visit reads the weights of a unit's k-th slab.
func (b *builder) visitReads(f plan.Func, u, k int) bool {
	return b.readsSlab(f, u, k) || f == plan.Backward && b.template(u).Recompute && b.readsSlab(plan.Recompute, u, k)
}

// readsSlab reports whether a function reads the weights of its unit's k-th slab. Backward of
// an embedding does not, and one that streams need not come back for it.
func (b *builder) readsSlab(f plan.Func, u, k int) bool {
	fn := b.template(u).Funcs[f]
	if fn == nil || len(fn.Body) == 0 {
		return true
	}
	use, ok := b.slabUse[fn]
	if !ok {
		use = make([]bool, len(b.p.Units[u].Slabs))
		eachPlace(fn.Body, func(p ir.Place) {
			if p.Region == ir.RWeight {
				use[p.Index] = true
			}
		})
		b.slabUse[fn] = use
	}
	return use[k]
}

// A fetch brings a slab to its slot for a visit. It may be submitted when the visits before
// `after` have been: the last of them used the slot for another slab.
type fetch struct {
	slab, unit, after int
}

// fetches walks the visits of a list with the slots empty at its start and finds which slabs
// must be brought. Layer r of the rotation has slot r mod slots in both directions, so that
// backward finds the last layers of forward, and the next group's forward the first ones,
// still there.
func (b *builder) fetches(visits []visit) []fetch {
	holds := make(map[plan.BufID]int, len(b.p.Slabs))
	free := make(map[plan.BufID]int, len(b.p.Slabs))
	var out []fetch
	for i, v := range visits {
		for _, u := range b.visitUnits(v) {
			for k, s := range b.p.Units[u].Slabs {
				if b.p.Slabs[s].Resident || !b.visitReads(v.fn, u, k) {
					continue
				}
				slot := b.slot(s)
				if held, ok := holds[slot]; !ok || held != s {
					out = append(out, fetch{s, u, free[slot]})
					holds[slot] = s
				}
				free[slot] = i + 1
			}
		}
	}
	return out
}

// prefetch emits, before visit i, the fetches whose slots are free by then, in the order of
// need: as far ahead of the compute lane as the slots allow. It returns the rest. With
// leftover, the update that a slab still needs stands before its first fetch.
func (b *builder) prefetch(fetches []fetch, i int, leftover bool) []fetch {
	for len(fetches) > 0 && fetches[0].after <= i {
		f := fetches[0]
		fetches = fetches[1:]
		if leftover {
			b.leftoverAhead(f.slab, fetches)
		}
		t := b.task(plan.Prefetch, device.H2D)
		t.Unit, t.Slab = f.unit, f.slab
		slab := &b.p.Slabs[f.slab]
		b.copyTask(t, b.slot(f.slab), 0, slab.Weight, 0, b.weightBytes(slab))
	}
	return fetches
}

// leftoverAhead emits the update that a slab still needs, and of the slabs fetched after it as
// many as lead says.
func (b *builder) leftoverAhead(s int, next []fetch) {
	b.leftover(s)
	n := b.lead()
	for _, f := range next {
		if n == 0 {
			break
		}
		if f.slab != s && !b.p.Slabs[f.slab].Frozen {
			s = f.slab
			b.leftover(s)
			n--
		}
	}
}
