package schedule

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// gradDone emits what follows the last contribution of a group to a slab's gradient.
func (b *builder) gradDone(s, u, g int) {
	last := g == b.groups-1
	slab := &b.p.Slabs[s]
	if b.hostSum(s) {
		dst := slab.Grad
		if g > 0 {
			dst = b.stage[s]
		}
		b.offload(s, u, dst)
		if g > 0 {
			b.accumulate(s, u, last)
		}
		if last {
			b.norm(s, u)
			if !b.clip {
				b.update(s, 0)
			}
		}
		return
	}
	if !last {
		return
	}
	if slab.HalfGrad {
		b.round(s, u)
	}
	if b.early(s) {
		b.gradEarly(s, u)
		return
	}
	if !slab.Resident && !b.home[s] {
		b.offload(s, u, slab.Grad)
	}
	b.norm(s, u)
	if !b.clip {
		b.update(s, 0)
	}
}

// offload emits the copy of a slab's gradient to the host.
func (b *builder) offload(s, u int, dst plan.BufID) {
	t := b.task(plan.Offload, device.D2H)
	t.Unit, t.Slab = u, s
	b.copyTask(t, dst, 0, b.link[s], 0, b.linkBytes(&b.p.Slabs[s]))
}

// gradEarly emits what follows the gradient of a slab that is updated in the same step: the
// norm where it was made, and on the host the updates whose turn it is. The scalars as the
// norm leaves them travel along, so that whether an update is skipped does not depend on the
// order of updates.
func (b *builder) gradEarly(s, u int) {
	slab := &b.p.Slabs[s]
	b.norm(s, u)
	for _, x := range b.updates.before[s] {
		b.update(x, 0)
	}
	t := b.task(plan.Report, device.D2H)
	t.Unit, t.Slab = u, s
	b.copyTask(t, slab.Scalars, 0, b.p.Scalars, 0, b.p.Buffers[b.p.Scalars].Bytes)
	b.offload(s, u, b.stage[s])
}

// accumulate adds a group's gradient, which has arrived in its host slot, to the step's; the last one
// makes the sums of squares.
func (b *builder) accumulate(s, u int, last bool) {
	slab := &b.p.Slabs[s]
	t := b.task(plan.Accumulate, device.Host)
	t.Unit, t.Slab = u, s
	t.Src, t.Dst, t.Bytes = b.stage[s], slab.Grad, gradBytes(slab)
	t.Bind.Add = []bool{true}
	t.Reads, t.Writes = []plan.BufID{b.stage[s], slab.Grad}, []plan.BufID{slab.Grad}
	t.FLOPs, t.Moved = slab.Elems, 3*f32*slab.Elems
	if last {
		t.Bind.Squares = b.p.HostSquares
		t.Writes = append(t.Writes, b.p.HostSquares)
		t.FLOPs += 2 * slab.Elems
	}
	b.emit(t)
}
