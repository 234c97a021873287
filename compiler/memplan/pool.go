package memplan

import (
	"slices"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// place lays out the buffers of a pooled class above base by walking a list: a buffer takes
// memory at the first task that writes it and gives it back after the last task that touches
// it before it is filled anew. Later groups of micro-batches repeat the first one's order, so
// what holds for the first holds for them; the verifier checks it. Returns the end of the
// region.
func place(p *plan.Plan, class []Class, arena int, c Class, base int64, list plan.Range) int64 {
	mine := make([]bool, len(p.Buffers))
	some := false
	for i := 1; i < len(p.Buffers); i++ {
		mine[i] = p.Buffers[i].Arena == arena && class[i] == c
		some = some || mine[i]
	}
	if !some { // most arenas have none, and lists are long
		return base
	}
	last := lifetimes(p, mine, list)
	free := freeList{}
	top := base
	placed := make([]bool, len(p.Buffers))
	var dead []plan.BufID
	var leaving []cooling
	unit, visits := -1, 0
	for i := list.Start; i < list.End; i++ {
		t := &p.Tasks[i]
		if t.Kind == plan.Compute && t.Unit != unit {
			unit = t.Unit
			visits++
			for len(leaving) > 0 && leaving[0].until <= visits {
				for _, id := range leaving[0].buffers {
					free.give(p.Buffers[id].Off, size(&p.Buffers[id]))
				}
				leaving = leaving[1:]
			}
		}
		dead = dead[:0]
		for _, ids := range [2][]plan.BufID{t.Writes, t.Reads} {
			for _, id := range ids {
				if !mine[id] {
					continue
				}
				if b := &p.Buffers[id]; !placed[id] {
					placed[id] = true
					n := size(b)
					off, ok := free.take(n, top)
					if !ok {
						off = top
					}
					b.Off = off
					top = max(top, off+n)
				}
				if last[id] == i && !slices.Contains(dead, id) {
					dead = append(dead, id)
				}
			}
		}
		if len(dead) > 0 && t.Lane != device.Compute {
			leaving = append(leaving, cooling{visits + cool, slices.Clone(dead)})
			continue
		}
		for _, id := range dead {
			free.give(p.Buffers[id].Off, size(&p.Buffers[id]))
		}
	}
	// A buffer that no task of the list touches still has an address.
	for i := 1; i < len(p.Buffers); i++ {
		if b := &p.Buffers[i]; mine[i] && !placed[i] {
			b.Off = top
			top += size(b)
		}
	}
	return top
}

// cool is how many visits of units memory rests after a copy that read it last: what computes
// there next would else wait for the copy.
const cool = 2

// cooling is buffers whose memory is free from a visit on.
type cooling struct {
	until   int
	buffers []plan.BufID
}

// lifetimes returns, for each buffer that is marked, the last task of its first use.
func lifetimes(p *plan.Plan, mine []bool, list plan.Range) []int {
	last := make([]int, len(p.Buffers))
	over := make([]bool, len(p.Buffers))
	for i := range last {
		last[i] = -1
	}
	for i := list.Start; i < list.End; i++ {
		t := &p.Tasks[i]
		touch := func(id plan.BufID, fresh bool) {
			switch {
			case !mine[id] || over[id]:
			case fresh && last[id] >= 0:
				over[id] = true
			default:
				last[id] = i
			}
		}
		for _, id := range t.Reads {
			touch(id, false)
		}
		for _, id := range t.Writes {
			if !slices.Contains(t.Reads, id) {
				touch(id, true)
			}
		}
	}
	return last
}

// freeList is the free memory below the top, as ranges in order of offset, none touching
// another.
type freeList []hole

type hole struct{ off, n int64 }

// take finds the smallest hole that fits; the last hole may grow past the top.
func (f *freeList) take(n, top int64) (int64, bool) {
	best := -1
	for i, h := range *f {
		if h.n >= n && (best < 0 || h.n < (*f)[best].n) {
			best = i
		}
	}
	if best < 0 {
		if k := len(*f) - 1; k >= 0 && (*f)[k].off+(*f)[k].n == top {
			off := (*f)[k].off
			*f = (*f)[:k]
			return off, true
		}
		return 0, false
	}
	h := &(*f)[best]
	off := h.off
	h.off += n
	h.n -= n
	if h.n == 0 {
		*f = slices.Delete(*f, best, best+1)
	}
	return off, true
}

// give returns a range and joins it with its neighbours.
func (f *freeList) give(off, n int64) {
	i, _ := slices.BinarySearchFunc(*f, off, func(h hole, off int64) int { return int(min(1, max(-1, h.off-off))) })
	*f = slices.Insert(*f, i, hole{off, n})
	if i+1 < len(*f) && (*f)[i].off+(*f)[i].n == (*f)[i+1].off {
		(*f)[i].n += (*f)[i+1].n
		*f = slices.Delete(*f, i+1, i+2)
	}
	if i > 0 && (*f)[i-1].off+(*f)[i-1].n == (*f)[i].off {
		(*f)[i-1].n += (*f)[i].n
		*f = slices.Delete(*f, i, i+1)
	}
}
