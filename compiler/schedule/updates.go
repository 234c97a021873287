package schedule

import (
	"slices"

	"github.com/megatrain/mtc/runtime/plan"
)

// updates is the order in which the host updates slabs without clipping, while backward goes
// on: of the gradients that have arrived it takes the latest, which is the one that the next
// forward needs soonest. What is left when backward ends runs under that forward, the layers
// that it reaches last coming last. The order is fixed here, by running a step on the nominal
// machine; on another machine it is as safe, and less well timed.
type updates struct {
	before [][]int // by slab: updates whose turn comes before its gradient arrives
	rest   []int   // those after the last gradient
}

// stageByUpdate finds the order of updates, and the host slot that each gradient waits in: a
// free one of its kind when it arrives. When none is free, the next update is of a gradient
// that holds one.
func (b *builder) stageByUpdate() {
	n := len(b.p.Slabs)
	h := &hostRun{b: b, machine: Nominal(b.p.Target), freed: map[plan.BufID]float64{}, left: map[plan.BufID]float64{}}
	h.updates.before = make([][]int, n)
	h.free[layerSlot] = b.ringOf(hostTrain, "stage", b.hostSlots, b.linkBytes, b.early)
	if other := b.otherSlot("stage", b.early); other != plan.NoBuf {
		h.free[otherSlot] = []plan.BufID{other}
	}
	for _, v := range b.trainVisits() {
		h.visit(v)
	}
	for len(h.waiting) > 0 {
		h.updates.rest = append(h.updates.rest, h.update(h.pick(h.waiting, -1)))
	}
	b.updates = &h.updates
}

// Kinds of host slots.
const (
	layerSlot = iota
	otherSlot
	slotKinds
)

// hostRun is the state of a run.
type hostRun struct {
	b       *builder
	machine Machine
	updates updates

	compute, d2h, host float64                // when each lane is free
	left               map[plan.BufID]float64 // by device gradient slot: when its gradient has left
	free               [slotKinds][]plan.BufID
	freed              map[plan.BufID]float64 // by host slot: when it was given back
	waiting            []arrived              // in order of arrival
}

// arrived is a gradient on the host.
type arrived struct {
	slab int
	at   float64
}

func (h *hostRun) kind(s int) int {
	if h.b.ring[s] >= 0 {
		return layerSlot
	}
	return otherSlot
}

// visit runs a unit's micro-batches and sends off the gradients that are complete with it.
func (h *hostRun) visit(v visit) {
	b := h.b
	lo, hi := b.group(v.group)
	units := b.visitUnits(v)
	for _, u := range units {
		t := b.template(u)
		fns := []plan.Func{v.fn}
		if v.fn == plan.Backward && t.Recompute {
			fns = append(fns, plan.Recompute)
		}
		for _, f := range fns {
			if fn := t.Funcs[f]; fn != nil {
				h.compute += float64(hi-lo) * max(float64(fn.FLOPs)/h.machine.FLOPs, float64(fn.Moved)/h.machine.Device)
			}
		}
	}
	if v.fn == plan.Forward {
		return
	}
	for _, u := range slices.Backward(units) {
		for _, s := range b.p.Units[u].Slabs {
			h.compute = max(h.compute, h.left[b.link[s]])
			c := b.contributors[s]
			if len(c) == 0 || c[len(c)-1] != u || v.group < b.groups-1 {
				continue
			}
			if b.early(s) {
				h.offload(s)
			} else {
				h.compute += 28 * float64(b.p.Slabs[s].Elems) / h.machine.Device
			}
		}
	}
}

// offload sends a gradient to the host once there is room, after the updates that begin before.
func (h *hostRun) offload(s int) {
	b, k := h.b, h.kind(s)
	for len(h.free[k]) == 0 {
		h.turn(s, h.pick(h.waiting, k))
	}
	slot := h.free[k][0]
	h.free[k] = h.free[k][1:]
	b.stage[s] = slot
	end := max(h.compute, h.d2h, h.freed[slot]) + float64(b.linkBytes(&b.p.Slabs[s]))/h.machine.Link
	h.d2h, h.left[b.link[s]] = end, end
	for len(h.waiting) > 0 && max(h.host, h.waiting[0].at) < end {
		h.turn(s, h.pick(h.waiting, -1))
	}
	h.waiting = append(h.waiting, arrived{s, end})
}

// turn runs an update before the gradient of slab s arrives.
func (h *hostRun) turn(s, next int) {
	h.updates.before[s] = append(h.updates.before[s], h.update(next))
}

// pick is the latest gradient that is there when the host is free; with a kind, the latest of
// those that hold a slot of that kind.
func (h *hostRun) pick(list []arrived, kind int) int {
	start := max(h.host, list[0].at)
	best := -1
	for i, a := range list {
		if (kind < 0 || h.kind(a.slab) == kind) && (best < 0 || a.at <= start) {
			best = i
		}
	}
	return best
}

// update runs the update of a waiting gradient and gives its slot back.
func (h *hostRun) update(i int) int {
	a := h.waiting[i]
	h.waiting = slices.Delete(h.waiting, i, i+1)
	h.host = max(h.host, a.at) + 28*float64(h.b.p.Slabs[a.slab].Elems)/h.machine.Host
	slot := h.b.stage[a.slab]
	h.freed[slot] = h.host
	k := h.kind(a.slab)
	h.free[k] = append(h.free[k], slot)
	return a.slab
}
