package schedule

import (
	"fmt"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// settle decides slab by slab what lives where: all of it on the device, or the gradient alone,
// or nothing.
func (b *builder) settle(o *Options) error {
	named := map[string]bool{}
	for _, name := range o.KeepNames {
		named[name] = true
	}
	var streaming []int // those whose gradients leave
	for i := range b.p.Slabs {
		s := &b.p.Slabs[i]
		s.Resident = o.Placement == Resident || named[s.Name] || len(named) == 0 && int64(i) < o.Keep
		delete(named, s.Name)
		b.streams = b.streams || !s.Resident
		if b.leaving(i) {
			streaming = append(streaming, i)
		}
	}
	for _, name := range o.KeepNames {
		if named[name] && o.Placement != Resident {
			return fmt.Errorf("no slab is called %q; there are %s", name, b.slabNames())
		}
	}
	b.half = o.HalfGrads && len(streaming) > 0
	b.home = make([]bool, len(b.p.Slabs))
	if b.clip || b.groups > 1 {
		n := o.DeviceGrads
		if n < 0 || n > int64(len(streaming)) {
			n = int64(len(streaming))
		}
		for _, s := range streaming[len(streaming)-int(n):] {
			b.home[s], b.homes = true, true
		}
		b.sums = b.groups > 1 && n < int64(len(streaming))
		if b.sums && n > 0 && !b.clip {
			return fmt.Errorf("without clipping, groups add up the gradients of all slabs that stream on the device or of none, not of %d of %d", n, len(streaming))
		}
	}
	if b.half && b.groups > 1 {
		return fmt.Errorf("gradients cross the link in bf16 when they are whole, so micro-batches are one group, not %d", b.groups)
	}
	for _, s := range streaming {
		b.p.Slabs[s].HalfGrad = b.half
	}
	return nil
}

// slabNames lists the slabs.
func (b *builder) slabNames() string {
	var names []string
	for _, s := range b.p.Slabs {
		names = append(names, s.Name)
	}
	return ir.JoinNames(names)
}

// hostSum reports whether a slab's gradient is whole on the host only: groups of micro-batches
// add up there.
func (b *builder) hostSum(s int) bool {
	return b.groups > 1 && b.leaving(s) && !b.home[s]
}

// hostNorms reports whether norms are reduced on the host lane: where some are made there.
func (b *builder) hostNorms() bool { return b.sums }

// early reports whether a slab is updated in the step that made its gradient, by a host that
// the scalars reach one by one.
func (b *builder) early(s int) bool {
	return !b.clip && b.leaving(s) && !b.hostSum(s)
}

// somehow reports whether any slab is as f says.
func (b *builder) somehow(f func(s int) bool) bool {
	for s := range b.p.Slabs {
		if f(s) {
			return true
		}
	}
	return false
}

func (b *builder) streaming(s int) bool { return !b.p.Slabs[s].Resident }

// leaving and staying tell slabs that learn by where they do: their gradients leave, or stay.
func (b *builder) leaving(s int) bool { return !b.p.Slabs[s].Frozen && !b.p.Slabs[s].Resident }
func (b *builder) staying(s int) bool { return !b.p.Slabs[s].Frozen && b.p.Slabs[s].Resident }

// linkBytes is the size of a slab's gradient on the link and on the host.
func (b *builder) linkBytes(s *plan.Slab) int64 {
	if b.half {
		return s.Elems * bf16
	}
	return gradBytes(s)
}

// updateGrad is where the update of a slab reads its gradient.
func (b *builder) updateGrad(s int) plan.BufID {
	if b.home[s] {
		return b.stage[s]
	}
	return b.p.Slabs[s].Grad
}

// lead is how many updates a list has before the first weights that must wait for one: where
// gradients leave just before their update, as many as there are slots for them on the host, so
// that the host does not wait for the link.
func (b *builder) lead() int {
	if b.clip && b.homes {
		return b.hostSlots - 1
	}
	return 0
}

// sendHome brings the gradient of the step before to the host, for its update.
func (b *builder) sendHome(s int) {
	slab := &b.p.Slabs[s]
	t := b.task(plan.Offload, device.D2H)
	t.Unit, t.Slab, t.Back = b.first[s], s, 1
	b.copyTask(t, b.stage[s], 0, slab.Grad, 0, b.linkBytes(slab))
}

// round emits the rounding of a slab's whole gradient to what crosses the link.
func (b *builder) round(s, u int) {
	slab := &b.p.Slabs[s]
	t := b.task(plan.Round, device.Compute)
	t.Unit, t.Slab = u, s
	t.Src, t.Dst, t.Bytes = b.grad[s], b.link[s], b.linkBytes(slab)
	t.Bind.Squares = b.p.Squares
	t.Reads, t.Writes = []plan.BufID{t.Src}, []plan.BufID{t.Dst, b.p.Squares}
	t.FLOPs, t.Moved = 3*slab.Elems, (f32+bf16)*slab.Elems
	b.emit(t)
}

// joinNorms brings the norms that were made on the device to those of the host.
func (b *builder) joinNorms() {
	p := b.p
	const f64 = 8
	for s := 0; s < p.Trained(); s++ {
		if b.hostSum(s) {
			continue
		}
		end := s + 1
		for end < p.Trained() && !b.hostSum(end) {
			end++
		}
		at, n := int64(s)*f64, int64(end-s)*f64
		b.copyTask(b.task(plan.Report, device.D2H), p.Norms, at, p.DeviceNorms, at, n)
		s = end
	}
}
