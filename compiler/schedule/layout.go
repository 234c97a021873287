package schedule

import (
	"fmt"
	"slices"

	"github.com/megatrain/mtc/compiler/memplan"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// The arenas. Those named train hold what generation never needs.
const (
	devWeights     = "device.weights"
	devTrain       = "device.train"
	devActivations = "device.activations"
	devIO          = "device.io"
	hostWeights    = "host.weights"
	hostTrain      = "host.train"
	hostIO         = "host.io"
)

var memories = map[string]device.Memory{
	devWeights: device.DeviceMemory, devTrain: device.DeviceMemory, devActivations: device.DeviceMemory,
	devIO: device.DeviceMemory, hostWeights: device.HostMemory, hostTrain: device.HostMemory, hostIO: device.HostMemory,
}

// buffer makes a buffer; its place is chosen later.
func (b *builder) buffer(arena, name string, bytes int64, c memplan.Class) plan.BufID {
	a, ok := b.arenas[arena]
	if !ok {
		a = len(b.p.Arenas)
		b.arenas[arena] = a
		b.p.Arenas = append(b.p.Arenas, plan.Arena{Name: arena, Memory: memories[arena]})
	}
	b.p.Buffers = append(b.p.Buffers, plan.Buffer{Name: name, Arena: a, Bytes: bytes})
	b.class = append(b.class, c)
	return plan.BufID(len(b.p.Buffers) - 1)
}

// parity makes a buffer with a copy for even and one for odd steps.
func (b *builder) parity(arena, name string, bytes int64) plan.BufID {
	id := b.buffer(arena, name, bytes, memplan.Static)
	b.p.Buffers[id].Parity = true
	return id
}

// layout makes every buffer of the plan.
func (b *builder) layout() {
	b.p.Buffers = []plan.Buffer{{}}
	b.class = []memplan.Class{memplan.Static}
	b.layoutWeights()
	b.layoutGrads()
	b.layoutActivations()
	b.layoutRemade()
	b.layoutSaved(b.saveCount)
	b.layoutGeneration()
	b.layoutIO()
	b.layoutRouters()
}

// Bytes of an element.
const (
	f32  = 4
	bf16 = 2
)

func gradBytes(s *plan.Slab) int64 { return s.Elems * f32 }

// weightBytes is the size of what the device computes with.
func (b *builder) weightBytes(s *plan.Slab) int64 { return s.Elems * b.p.WeightSize() }

// layoutWeights places weights and optimizer state: at home on the device, or at home on the
// host with slots on the device, shared by the layers in rotation.
func (b *builder) layoutWeights() {
	for i := range b.p.Slabs {
		s := &b.p.Slabs[i]
		home, train := hostWeights, hostTrain
		if s.Resident {
			home, train = devWeights, devTrain
		}
		s.Weight = b.buffer(home, s.Name+".weight", b.weightBytes(s), memplan.Static)
		if b.p.Bf16() {
			s.Lo = b.buffer(train, s.Name+".lo", s.Elems*2, memplan.Static)
		}
		s.M = b.buffer(train, s.Name+".m", s.Elems*f32, memplan.Static)
		s.V = b.buffer(train, s.Name+".v", s.Elems*f32, memplan.Static)
		b.weight = append(b.weight, s.Weight)
	}
	b.slots(b.weight, devWeights, "weight", slotsOf{int(b.p.Slots), b.ownSlots}, b.weightBytes, b.streaming)
	b.genWeight = slices.Clone(b.weight)
	for i := range b.p.Slabs {
		if s := &b.p.Slabs[i]; b.pooled(i) {
			b.genWeight[i] = b.buffer(devActivations, s.Name+".gen.weight.slot", b.weightBytes(s), memplan.GenPooled)
		}
	}
}

// pooled reports whether the slots of a slab lie among the activations, each for as long as it
// is needed: those of slabs that stream and do not rotate, where weights come once a step.
func (b *builder) pooled(s int) bool {
	return b.ring[s] < 0 && !b.p.Slabs[s].Resident && b.groups == 1
}

// layoutGrads places the gradients: whole where the norm of all must be known first or where
// groups add up, else in slots. In bf16 compute adds up in f32 slots of its own, and what is
// rounded is what is kept.
func (b *builder) layoutGrads() {
	n := len(b.p.Slabs)
	b.grad, b.link, b.stage = make([]plan.BufID, n), make([]plan.BufID, n), make([]plan.BufID, n)
	whole := b.clip || b.groups > 1
	if whole {
		for i := range b.p.Slabs {
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
	if !whole && b.streams && b.p.Slabs[0].Resident {
		name = "grad.out"
	}
	if b.half {
		passing = b.every // only compute touches them
	}
	b.slots(b.grad, devTrain, name, slotsOf{passing, 0}, gradBytes, func(s int) bool { return b.streaming(s) && (b.half || !b.home[s]) })
	copy(b.link, b.grad)
	if b.half {
		b.slots(b.link, devTrain, "grad.rounded", slotsOf{int(b.p.GradSlots), 0}, b.linkBytes, func(s int) bool { return b.streaming(s) && !b.home[s] })
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
		for i := range b.p.Slabs {
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

// layoutActivations makes the values between units and their gradients, one buffer for each
// micro-batch of a group, and what forward saves for backward.
func (b *builder) layoutActivations() {
	_, n := b.group(0)
	nv := len(b.prog.Model.Values)
	b.value, b.dvalue = make([][]plan.BufID, nv), make([][]plan.BufID, nv)
	b.saved = make([][]plan.BufID, len(b.p.Units))
	var work, recomputed int64
	for _, t := range b.prog.Templates {
		for _, f := range t.Funcs {
			if f != nil {
				work = max(work, f.WorkBytes)
			}
		}
		if t.Recompute {
			recomputed = max(recomputed, t.SavedBytes)
		}
	}
	if work > 0 {
		b.work = b.buffer(devActivations, "work", work, memplan.Static)
	}
	var shared []plan.BufID // by place in a chain
	if recomputed > 0 {
		shared = append(shared, b.buffer(devActivations, "recomputed", recomputed, memplan.Static))
		for k := 1; k <= slices.Max(b.chain); k++ {
			shared = append(shared, b.buffer(devActivations, fmt.Sprintf("recomputed[%d]", k), recomputed, memplan.Static))
		}
	}
	for u, unit := range b.p.Units {
		t := b.template(u)
		for i, v := range unit.Out {
			for m := range n {
				name := fmt.Sprintf("%s.out[%d].micro[%d]", unit.Name, i, m)
				b.value[v] = append(b.value[v], b.buffer(devActivations, name, t.Out[i].Bytes(), memplan.Pooled))
			}
			for m := range n {
				name := fmt.Sprintf("%s.d.out[%d].micro[%d]", unit.Name, i, m)
				b.dvalue[v] = append(b.dvalue[v], b.buffer(devActivations, name, t.Out[i].Bytes(), memplan.Pooled))
			}
		}
		for m := range n {
			switch {
			case t.SavedBytes == 0:
				b.saved[u] = append(b.saved[u], plan.NoBuf)
			case t.Recompute:
				b.saved[u] = append(b.saved[u], shared[b.place(u)])
			default:
				name := fmt.Sprintf("%s.saved.micro[%d]", unit.Name, m)
				b.saved[u] = append(b.saved[u], b.buffer(devActivations, name, t.SavedBytes, memplan.Pooled))
			}
		}
	}
}

// layoutGeneration makes the values of one sequence's chunk and the caches.
func (b *builder) layoutGeneration() {
	b.genValue = make([]plan.BufID, len(b.prog.Model.Values))
	b.state = make([]plan.BufID, len(b.p.Units))
	for u, unit := range b.p.Units {
		t := b.template(u)
		if t.StateBytes > 0 {
			b.state[u] = b.buffer(devActivations, unit.Name+".state", t.StateBytes, memplan.Gen)
		}
		for i, v := range unit.Out {
			n := t.Out[i].Bytes() / (b.p.Rows * b.p.Seq) * b.p.Prefill
			if len(t.Gen) > i && u != b.head {
				n = t.Gen[i].Bytes()
			}
			class := memplan.GenPooled
			if b.prog.Units[u].Unit.Part == "route" {
				class = memplan.Gen // kept, for who wants to know where the last tokens went
			}
			b.genValue[v] = b.buffer(devActivations, fmt.Sprintf("%s.gen[%d]", unit.Name, i), n, class)
		}
	}
}

// layoutIO makes what passes between the host and the device besides slabs, and the tables.
func (b *builder) layoutIO() {
	p := b.p
	const i32, f64 = 4, 8
	rows := p.Rows * p.Seq * i32
	targets := rows
	if p.Documents {
		targets = 3 * rows // with starts and places in documents
	}
	for m := range b.micros {
		id := b.parity(devIO, fmt.Sprintf("tokens.micro[%d]", m), rows)
		if m == 0 {
			p.Tokens = id
		}
	}
	for m := range b.micros {
		id := b.parity(devIO, fmt.Sprintf("targets.micro[%d]", m), targets)
		if m == 0 {
			p.Targets = id
		}
	}
	static := func(arena, name string, n int64) plan.BufID { return b.buffer(arena, name, n, memplan.Static) }
	p.Positions = static(devIO, "positions", rows)
	p.Scalars = b.parity(devIO, "scalars", plan.NumScalars*f64)
	p.Partials = static(devIO, "partials", p.Micros*2*f64)
	p.HostTokens = b.parity(hostIO, "host.tokens", p.Micros*rows)
	p.HostTargets = b.parity(hostIO, "host.targets", p.Micros*targets)
	p.HostScalars = b.parity(hostIO, "host.scalars", plan.NumScalars*f64)
	p.Results = b.parity(hostIO, "results", plan.NumScalars*f64)
	norms := int64(len(p.Slabs)) * f64
	for i := range p.Slabs {
		if b.early(i) {
			p.Slabs[i].Scalars = static(hostIO, p.Slabs[i].Name+".scalars", plan.NumScalars*f64)
		}
	}
	if b.hostNorms() {
		p.HostPartials = static(hostIO, "host.partials", p.Micros*2*f64)
		p.Norms = static(hostIO, "norms", norms)
		if b.somehow(func(s int) bool { return !b.hostSum(s) }) {
			p.DeviceNorms = static(devIO, "device.norms", norms)
		}
	} else {
		p.Norms = static(devIO, "norms", norms)
	}
	p.GenTokens = static(devIO, "gen.tokens", p.Prefill*i32)
	p.GenPositions = static(devIO, "gen.positions", p.Prefill*i32)
	p.GenLogits = static(devIO, "gen.logits", p.Vocab*p.WeightSize())
	p.HostGenTokens = static(hostIO, "host.gen.tokens", p.Prefill*i32)
	p.HostGenPositions = static(hostIO, "host.gen.positions", p.Prefill*i32)
	p.HostGenLogits = static(hostIO, "host.gen.logits", p.Vocab*p.WeightSize())
	for _, t := range b.prog.Tables {
		id := static(devIO, t.Name, t.Table.Type.Bytes())
		p.Tables = append(p.Tables, plan.Table{Name: t.Name, Buf: id})
		b.tables = append(b.tables, id)
	}
}
