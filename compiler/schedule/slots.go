package schedule

import (
	"fmt"

	"github.com/megatrain/mtc/compiler/memplan"
	"github.com/megatrain/mtc/runtime/plan"
)

// layoutGrads places the gradients: whole where the norm of all must be known first or where
// groups add up, else in slots. In bf16 compute adds up in f32 slots of its own, and what is
// rounded is what is kept.
func (b *builder) layoutGrads() {
	n := len(b.p.Slabs)
	b.grad, b.link, b.stage = make([]plan.BufID, n), make([]plan.BufID, n), make([]plan.BufID, n)
	whole := b.clip || b.groups > 1
	if whole {
		for i := range b.p.Trained() {
			s := &b.p.Slabs[i]
			arena, size := hostTrain, b.linkBytes(s)
			if s.Resident {
				arena, size = devTrain, gradBytes(s)
			}
			if b.home[i] {
				arena = devTrain
			}
			s.Grad = b.buffer(arena, s.Name+".grad", size, memplan.Static)
			b.grad[i] = s.Grad
		}
	} else {
		// The update follows on the same lane, so one slot serves all layers, or a chain of them.
		b.slots(b.grad, devTrain, "grad", slotsOf{b.every, 0}, gradBytes, b.staying)
	}
	name, passing := "grad", int(b.p.GradSlots)
	stays := func(s int) bool { return b.ring[s] >= 0 && b.staying(s) } // in the slots above
	if !whole && b.streams && (b.p.Slabs[0].Resident || b.somehow(stays)) {
		name = "grad.out"
	}
	if b.half {
		passing = b.every // only compute touches them
	}
	b.slots(b.grad, devTrain, name, slotsOf{passing, 0}, gradBytes, func(s int) bool { return b.leaving(s) && (b.half || !b.home[s]) })
	copy(b.link, b.grad)
	if b.half {
		b.slots(b.link, devTrain, "grad.rounded", slotsOf{int(b.p.GradSlots), 0}, b.linkBytes, func(s int) bool { return b.leaving(s) && !b.home[s] })
		for i := range b.p.Slabs {
			if b.home[i] {
				b.link[i] = b.p.Slabs[i].Grad
			}
		}
	}
	switch {
	case b.somehow(b.early):
		b.stageByUpdate()
	default:
		b.sharedSlots(b.stage, "stage", b.hostSlots, func(s int) bool { return b.home[s] || b.hostSum(s) })
	}
	if !whole {
		for i := range b.p.Trained() {
			s := &b.p.Slabs[i]
			if s.Grad = b.grad[i]; !s.Resident {
				s.Grad = b.stage[i]
			}
		}
	}
}

// slotsOf is how many slots rotate, and how many of the first layers have one of their own (All:
// every one).
type slotsOf struct {
	rotating int
	own      int64
}

// slots gives the slabs that which selects a slot: rotating ones for those of layers, and one
// each for the others, which may share memory with what is needed at other times.
func (b *builder) slots(out []plan.BufID, arena, name string, n slotsOf, size func(*plan.Slab) int64, which func(s int) bool) {
	layers := int64(0)
	rotates := func(s int) bool { return b.ring[s] >= 0 && which(s) }
	for i := range b.p.Slabs {
		if s := &b.p.Slabs[i]; rotates(i) && (n.own < 0 || layers < n.own) {
			layers++
			out[i] = b.buffer(arena, s.Name+"."+name+".slot", size(s), memplan.Static)
		}
	}
	left := layers
	ring := b.ringOf(arena, name, n.rotating, size, func(s int) bool {
		if !rotates(s) {
			return false
		}
		left--
		return left < 0
	})
	at := 0
	left = layers
	for i := range b.p.Slabs {
		s := &b.p.Slabs[i]
		switch {
		case !which(i):
		case b.ring[i] >= 0:
			if left--; left < 0 {
				out[i] = ring[at%len(ring)]
				at++
			}
		case b.pooled(i):
			out[i] = b.buffer(devActivations, s.Name+"."+name+".slot", size(s), memplan.Pooled)
		default:
			out[i] = b.buffer(arena, s.Name+"."+name+".slot", size(s), memplan.Static)
		}
	}
}

// ringOf makes n slots, or fewer where fewer layers are selected, for the largest of them.
func (b *builder) ringOf(arena, name string, n int, size func(*plan.Slab) int64, which func(s int) bool) []plan.BufID {
	var layers, biggest int64
	for i := range b.p.Slabs {
		if b.ring[i] >= 0 && which(i) {
			layers++
			biggest = max(biggest, size(&b.p.Slabs[i]))
		}
	}
	ring := make([]plan.BufID, min(int64(n), layers))
	for i := range ring {
		ring[i] = b.buffer(arena, fmt.Sprintf("%s.slot[%d]", name, i), biggest, memplan.Static)
	}
	return ring
}

// otherSlot makes one slot on the host that serves all gradients selected that are no layer's;
// NoBuf when there are none.
func (b *builder) otherSlot(name string, which func(s int) bool) plan.BufID {
	var other int64
	for i := range b.p.Slabs {
		if b.ring[i] < 0 && which(i) {
			other = max(other, b.linkBytes(&b.p.Slabs[i]))
		}
	}
	if other == 0 {
		return plan.NoBuf
	}
	return b.buffer(hostTrain, name+".slot", other, memplan.Static)
}

// sharedSlots gives the gradients selected n host slots in rotation for layers and one for all
// others.
func (b *builder) sharedSlots(out []plan.BufID, name string, n int, which func(s int) bool) {
	ring := b.ringOf(hostTrain, name, n, b.linkBytes, which)
	other := b.otherSlot(name, which)
	at := 0
	for i := range b.p.Slabs {
		switch {
		case !which(i):
		case b.ring[i] >= 0:
			out[i] = ring[at%len(ring)]
			at++
		default:
			out[i] = other
		}
	}
}
