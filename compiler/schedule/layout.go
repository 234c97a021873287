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
		b.weight = append(b.weight, s.Weight)
		if s.Frozen {
			continue
		}
		if b.p.Bf16() {
			s.Lo = b.buffer(train, s.Name+".lo", s.Elems*2, memplan.Static)
		}
		s.M = b.buffer(train, s.Name+".m", s.Elems*f32, memplan.Static)
		s.V = b.buffer(train, s.Name+".v", s.Elems*f32, memplan.Static)
	}
	// What is frozen and what learns differ much in size, so that each has slots of its own.
	n, lora := slotsOf{int(b.p.Slots), b.ownSlots}, b.p.Trained() < len(b.p.Slabs)
	b.slots(b.weight, devWeights, "weight", n, b.weightBytes, func(s int) bool { return b.streaming(s) && b.p.Slabs[s].Frozen == lora })
	if lora {
		b.slots(b.weight, devWeights, "adapter", n, b.weightBytes, b.leaving)
	}
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
	b.layoutKept(b.keepCount)
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
			case b.save.pass[u] != nil:
				b.saved[u] = append(b.saved[u], b.save.pass[u][m])
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
	norms := int64(p.Trained()) * f64
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
	squares := p.SquaresOff(p.Trained())
	if b.somehow(func(s int) bool { return !b.p.Slabs[s].Frozen && !b.hostSum(s) }) {
		p.Squares = static(devIO, "squares", squares)
	}
	if b.somehow(b.hostSum) {
		p.HostSquares = static(hostIO, "host.squares", squares)
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
