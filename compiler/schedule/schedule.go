// Package schedule turns a program into a plan: the static lists of tasks that train,
// evaluate and generate, on four lanes, with the buffers they touch and the waits between
// them.
//
// Build makes the tasks in submission order (train.go, eval.go), lets memplan place the
// buffers, and then derives the waits mechanically from the byte ranges that tasks on
// different lanes touch (order.go): what is not said twice cannot disagree. Verify
// (verify.go) proves the result by other means and runs on every compile. The package
// decides no placement by itself: Options says what is resident and how many slots there are.
package schedule

import (
	"fmt"
	"path/filepath"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/compiler/memplan"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// The placements.
const (
	Resident = "resident" // weights, gradients and optimizer state on the device
	Stream   = "stream"   // state on the host; weights stream in, gradients out
	Auto     = "auto"     // resident where it fits, else stream
)

// The orders of a step.
const (
	LayerMajor = "layer" // a layer takes all micro-batches of a group before the next layer
	BatchMajor = "batch" // a group for each micro-batch
)

// All is every one, where an option counts.
const All = -1

// Options are the choices that shape the schedule. The zero value of a field is its default.
type Options struct {
	Placement string // Resident (default), Stream or Auto
	// DeviceMemory is how many bytes the plan may take on the device, 0: any number. A stream
	// fills them: slabs whose state fits besides stay there.
	DeviceMemory int64
	// Keep is how many slabs of a stream stay on the device, the first in forward order; with
	// KeepNames those of these names. With DeviceMemory it is as many first ones as fit, unless
	// KeepPinned.
	Keep       int64
	KeepNames  []string
	KeepPinned bool
	// DeviceWeights is how many of the first layers that stream have a slot of their own for
	// weights on the device; All: every one.
	DeviceWeights int64
	// DeviceGrads is how many slabs that stream, the last in forward order, keep the whole
	// gradient of a step on the device until their update; All: every one.
	DeviceGrads int64
	// HalfGrads lets gradients of slabs that stream leave in bf16, rounded on the device.
	HalfGrads bool
	// SaveInputs is how many values between units, the first in forward order, wait for backward
	// on the host; All: every one. With SaveAuto it is as few as fit DeviceMemory.
	SaveInputs int64
	SaveAuto   bool
	// SaveKept is of how many layers that keep what backward reads, the first in forward order, that
	// waits on the host; All: of every one.
	SaveKept int64
	// InputEvery keeps the input of every so many layers that recompute; 0 and 1: of every one.
	InputEvery int64

	Slots     int64 // device slots for the weights of layers (stream), default InputEvery + 1
	GradSlots int64 // device slots for the gradients of layers (stream), default InputEvery + 1
	HostSlots int64 // host slots for gradients on their way to an update (stream), default 4
	// Groups of micro-batches; 0: one for a stream, whose weights then cross once a pass, and a
	// micro-batch a group where all is resident, so that one micro-batch's activations are alive.
	Groups int64
	Order  string // LayerMajor (default), or BatchMajor: a group for each micro-batch

	Target   string // "cpu" (default) or "cuda"
	Compiler string // version of mtc
	Hash     string // of the model text and the values that change the schedule
	// ModelHash is of what a checkpoint depends on.
	ModelHash string

	// Memory is where the tasks of a plan without DeviceMemory lie; nil: in memory of its own.
	Memory *Memory
}

// Build makes the plan of a program: tasks, memory and waits. The program's model has a
// train block. Errors say which option or unit does not fit.
func Build(prog *ir.Program, o Options) (*plan.Plan, error) {
	b, err := choose(prog, o)
	if err != nil {
		return nil, err
	}
	if err := order(b.p, b.results, b.mem); err != nil {
		return nil, err
	}
	return b.p, nil
}

// Draft makes a plan without its waits: what takes memory is all there, at half of the time.
func Draft(prog *ir.Program, o Options) (*plan.Plan, error) {
	b, err := choose(prog, o)
	if err != nil {
		return nil, err
	}
	return b.p, nil
}

// assemble makes the tasks and the memory of a plan, all but its waits.
func assemble(prog *ir.Program, o Options) (*builder, error) {
	b, err := newBuilder(prog, o)
	if err != nil {
		return nil, err
	}
	if err := b.checkRouters(); err != nil {
		return nil, err
	}
	b.layout()
	b.train(plan.First)
	b.train(plan.Steady)
	b.drain()
	b.eval()
	b.generate(plan.Prefill)
	b.generate(plan.Decode)
	if o.SaveKept != 0 && b.p.SavedLayers == 0 {
		return nil, fmt.Errorf("nothing has to wait on the host: no two equal layers keep what backward reads")
	}
	b.mem.tasks = b.p.Tasks
	return b, memplan.Place(b.p, b.class)
}

// builder holds what the lists are made from.
type builder struct {
	prog *ir.Program
	p    *plan.Plan

	clip             bool
	streams          bool   // some slabs stream
	half             bool   // gradients of those leave in bf16
	home             []bool // by slab: it streams, and its gradient waits for the update on the device
	homes            bool   // those of some do
	sums             bool   // gradients of groups add up on the host for some slabs
	ownSlots         int64  // layers that stream with a weight slot of their own, All: every one
	micros, groups   int
	hostSlots        int
	class            []memplan.Class // by buffer
	arenas           map[string]int
	spans            map[string]int
	contributors     [][]int // by slab: units that make its gradient, in backward order
	ring             []int   // by slab: place in the rotation of layer slabs, -1 for others
	first            []int   // by slab: the unit that binds it first
	head             int     // the unit with the loss
	tokens, position int     // values of the model, -1 when none

	weight    []plan.BufID   // by slab: where compute reads it
	genWeight []plan.BufID   // by slab: where generation reads it
	grad      []plan.BufID   // by slab: where compute adds up its gradient
	link      []plan.BufID   // by slab: where its gradient leaves from, rounded if that is asked for
	stage     []plan.BufID   // by slab: host slot its gradient passes through, NoBuf when none
	value     [][]plan.BufID // by value, micro-batch of the group
	dvalue    [][]plan.BufID
	saved     [][]plan.BufID // by unit, micro-batch of the group
	saveCount int64          // values between units to save on the host
	keepCount int64          // layers that keep what backward reads, to save that on the host
	save      saves
	every     int          // layers that backward visits together at most
	chain     []int        // by unit: units below it that backward visits with it
	remade    []plan.BufID // by value: where backward makes it again, NoBuf where it is kept
	work      plan.BufID
	genValue  []plan.BufID // by value
	state     []plan.BufID // by unit
	router    []plan.BufID // by unit: state of its router
	tables    []plan.BufID
	tableUse  map[*ir.Function][]int
	slabUse   map[*ir.Function][]bool

	mem           *Memory
	reads, writes []plan.BufID // room to collect a task's in

	list    plan.List
	results [plan.NumLists]int // task that completes Results, -1
	updated []bool             // by slab: the list has its update of the step before
	updates *updates           // the order of early ones, nil without any
}

func newBuilder(prog *ir.Program, o Options) (*builder, error) {
	m := prog.Model
	if m.Train == nil {
		return nil, fmt.Errorf("the model has no train block, so the size of a step is not known")
	}
	def := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	def(&o.InputEvery, 1)
	def(&o.Slots, o.InputEvery+1)
	def(&o.GradSlots, o.InputEvery+1)
	def(&o.HostSlots, 4)
	if o.Placement == "" {
		o.Placement = Resident
	}
	if o.Target == "" {
		o.Target = "cpu"
	}
	if o.Placement != Resident && o.Placement != Stream {
		return nil, fmt.Errorf("placement %q is none of %q, %q and %q", o.Placement, Resident, Stream, Auto)
	}
	if o.Slots < 1 || o.GradSlots < 1 || o.HostSlots < 1 {
		return nil, fmt.Errorf("%d weight slots, %d gradient slots, %d host slots: each must be at least 1", o.Slots, o.GradSlots, o.HostSlots)
	}
	if prog.Rows < 1 || m.Batch%prog.Rows != 0 {
		return nil, fmt.Errorf("a batch of %d rows cannot be cut into micro-batches of %d", m.Batch, prog.Rows)
	}
	micros := m.Batch / prog.Rows
	switch {
	case o.Order == BatchMajor && o.Groups != 0 && o.Groups != micros:
		return nil, fmt.Errorf("%d groups of %d micro-batches are not batch-major: each micro-batch is a group then", o.Groups, micros)
	case o.Order == BatchMajor || o.Placement == Resident && o.Order == "" && !wholeStep(prog):
		def(&o.Groups, micros)
	}
	def(&o.Groups, 1)
	if o.Groups < 1 || o.Groups > micros {
		return nil, fmt.Errorf("%d groups of %d micro-batches: there must be at least one micro-batch in each", o.Groups, micros)
	}
	b := &builder{
		prog: prog, clip: m.Train.Run.Clip > 0,
		micros: int(micros), groups: int(o.Groups), hostSlots: int(o.HostSlots), saveCount: o.SaveInputs, keepCount: o.SaveKept, every: int(o.InputEvery), ownSlots: o.DeviceWeights,
		reads: make([]plan.BufID, 0, 64), writes: make([]plan.BufID, 0, 64),
		arenas: map[string]int{}, spans: map[string]int{}, tableUse: map[*ir.Function][]int{}, slabUse: map[*ir.Function][]bool{}, tokens: -1, position: -1,
	}
	b.p = &plan.Plan{
		Format: plan.Format, Model: m.Name, Hash: o.Hash, ModelHash: o.ModelHash, Compiler: o.Compiler, Target: o.Target,
		NumParams: m.NumParams(), Batch: m.Batch, Seq: m.Seq, Vocab: m.Vocab,
		Micros: micros, Groups: o.Groups, Rows: prog.Rows, Prefill: prog.Prefill,
		Precision: prog.DType.String(), Placement: o.Placement, Clip: b.clip, Slots: o.Slots, GradSlots: o.GradSlots, Documents: prog.Documents,
		Train: m.Train.Run, LoRA: loraOf(m),
	}
	if b.mem = o.Memory; b.mem == nil || o.DeviceMemory > 0 { // several are made then
		b.mem = new(Memory)
	}
	b.mem.begin()
	if o.Target == "cuda" {
		b.p.Scratch = scratch(prog)
	}
	if m.File != nil {
		b.p.Source = filepath.Base(m.File.Name)
	}
	for i := range b.results {
		b.results[i] = -1
	}
	if err := b.survey(); err != nil {
		return nil, err
	}
	if err := b.settle(&o); err != nil {
		return nil, err
	}
	if err := b.chains(&o); err != nil {
		return nil, err
	}
	b.p.Tasks = b.mem.room(b.most())
	return b, nil
}

// most is how many tasks there are at most: they are large and many, so that the list must not grow. A unit and micro-batch has
// at most three tasks in each list of training and one in eval, and two feeds in each; what waits on the host leaves and
// comes back in each list of training.
func (b *builder) most() int {
	units, layers := len(b.p.Units), 1
	for _, u := range b.p.Units {
		layers = max(layers, u.Layer+1)
	}
	waits := units // values between units, and what units keep
	if n := b.saveCount; n >= 0 {
		waits = min(waits, int(n))
	}
	if n := b.keepCount; n < 0 || n > int64(layers) {
		waits += units
	} else {
		waits += int(n) * ((units + layers - 1) / layers)
	}
	return b.micros*(7*units+6+4*waits) + b.groups*24*(len(b.p.Slabs)+1) + 64
}

// group returns the micro-batches of a group, [lo, hi). Sizes differ by at most one, the
// larger groups first.
func (b *builder) group(g int) (lo, hi int) {
	n, rest := b.micros/b.groups, b.micros%b.groups
	return g*n + min(g, rest), (g+1)*n + min(g+1, rest)
}

func (b *builder) template(u int) *ir.Template { return b.prog.Templates[b.prog.Units[u].Template] }

// span interns the position of a task's text, such as "nano.mt:12".
func (b *builder) span(s source.Span) int {
	text := ""
	if s.Valid() {
		line, _ := s.File.Position(s.Start)
		text = fmt.Sprintf("%s:%d", filepath.Base(s.File.Name), line)
	}
	i, ok := b.spans[text]
	if !ok {
		i = len(b.p.Spans)
		b.spans[text] = i
		b.p.Spans = append(b.p.Spans, text)
	}
	return i
}

// begin opens a list.
func (b *builder) begin(l plan.List) {
	b.list = l
	b.p.Lists[l] = plan.Range{Start: len(b.p.Tasks), End: len(b.p.Tasks)}
	b.updated = make([]bool, len(b.p.Slabs))
}

// task returns a task without unit, slab and micro-batch, to fill in and emit.
func (b *builder) task(k plan.Kind, l device.Lane) plan.Task {
	return plan.Task{Kind: k, Lane: l, Unit: -1, Slab: -1, Micro: -1, Template: -1, Event: -1}
}

// emit appends a task to the open list and returns its ID.
func (b *builder) emit(t plan.Task) int {
	t.ID, t.List = len(b.p.Tasks), b.list
	t.Reads, t.Writes = append(b.ids(len(t.Reads)), t.Reads...), append(b.ids(len(t.Writes)), t.Writes...)
	if t.Unit >= 0 {
		t.Span = b.p.Units[t.Unit].Span
	}
	b.p.Tasks = append(b.p.Tasks, t)
	b.p.Lists[b.list].End = len(b.p.Tasks)
	return t.ID
}

// ids returns an empty list with room for n buffers.
func (b *builder) ids(n int) []plan.BufID { return b.mem.ids.cut(n) }

// copyTask emits a copy of n bytes.
func (b *builder) copyTask(t plan.Task, dst plan.BufID, dstOff int64, src plan.BufID, srcOff, n int64) int {
	t.Dst, t.DstOff, t.Src, t.SrcOff, t.Bytes = dst, dstOff, src, srcOff, n
	t.Reads, t.Writes = append(b.reads[:0], src), append(b.writes[:0], dst)
	t.Moved = 2 * n
	return b.emit(t)
}
