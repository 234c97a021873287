// Package plan is the static plan of a run: what memory there is, which parameters lie
// where, and every task of every list in submission order. The compiler makes it, the
// verifier proves it, generated Go carries it, the engine executes it. It is plain data
// with no behaviour beyond look-ups and String methods.
//
// Submission order. The engine submits a list's tasks one after another to the queues of
// their lanes. Every wait names an event that was recorded by an earlier task in that order
// (of this list, or of the step before), so submission never blocks on itself.
//
// Steps. `first` is the first step after a start or a drain; `steady` is every later one;
// `drain` finishes the updates that a step leaves to the next. With clipping on, a step's
// updates stand at the front of the next step's list, under its forward. The engine counts
// steps; step s uses copy s&1 of each Parity buffer, and a task with Back = 1 uses the copy
// of step s-1. `drain` is submitted as if it were the next step and does not count. After a
// drain, and before and after eval, prefill and decode, the engine syncs the device.
//
// Events. The engine keeps two device events for each event number and records the one of
// the list's step (s&1): a Wait with Back = 0 waits for the event of this step, with Back = 1
// for that of the step before. An event that was never recorded holds nobody up. `first`,
// `eval`, `prefill` and `decode` have no waits with Back = 1. At most one task of a list
// records a number, and it is the same logical task in every list.
//
// Host. Before the engine writes the host blocks of step s (HostTokens, HostTargets,
// HostScalars; copy s&1) and submits the step, the results of step s-2 have arrived: it has
// synced ResultsEvent of that step. The order of tasks relies on this and on nothing else
// that the engine does.
//
// The scalars block. HostScalars is written by the host with the values of the step and
// zeros elsewhere, and fed to Scalars on the device. Norms are made on the compute lane, or
// on the host lane where the whole gradient of a step exists only there; reduce and update
// work on the block of their own lane: Scalars on the compute lane (report then copies it to
// Results), Results itself on the host lane (a feed on the host lane copies HostScalars to
// Results first).
package plan

import "github.com/megatrain/mtc/runtime/device"

// Plan is everything the engine needs.
type Plan struct {
	Format int // see the constant
	Model  string
	Source string // name of the .mt file
	Hash   string // of the model text and the values that change the schedule
	// ModelHash is of what a checkpoint depends on: names and shapes of the parameters, the
	// mathematics of the graph, Seq. It is the same for every target, placement, batch and way
	// of training.
	ModelHash string
	Values    []Value // parameters of the model, for telling two apart
	Compiler  string  // version of mtc
	Target    string  // "cpu" or "cuda"
	// Precision is what the device computes in, "f32" or "bf16": activations and its copy of
	// the weights. Everything else is f32 in both.
	Precision string
	// Documents says that documents share rows and are kept apart. The targets of a micro-batch
	// are then followed by the start of each position's document in its row, and by its place in
	// the document: three times [Rows*T] i32.
	Documents bool

	NumParams int64
	Batch     int64 // rows a step
	Seq       int64 // T
	Vocab     int64 // rows of the token embedding
	Micros    int64 // micro-batches a step
	Groups    int64 // groups of micro-batches; weights cross once a group and pass
	Rows      int64 // rows (sequences) of one micro-batch
	Prefill   int64 // positions of one prefill chunk

	Placement string // "resident" or "stream"
	Clip      bool
	Slots     int64 // device slots for layer weights (stream)
	GradSlots int64 // device slots for layer gradients (stream)
	// Scratch is the device memory that kernels take besides the arenas while they run, of what goes beyond the few MB
	// that a device has room for anyway.
	Scratch int64
	// SavedInputs is how many values between units wait for backward on the host.
	SavedInputs int64
	// SavedLayers is of how many layers what backward reads waits on the host.
	SavedLayers int64

	Train Train
	LoRA  LoRA // Rank 0: none

	Foreign []Foreign // how a Hugging Face checkpoint keeps the weights; empty: it is not known
	Family  Family

	Arenas    []Arena
	Buffers   []Buffer
	Slabs     []Slab
	Templates []string // names; the program holds their functions in the same order
	Units     []Unit
	Tables    []Table
	Routers   []Router
	Events    int // number of events
	Tasks     []Task
	Lists     [NumLists]Range // ranges of Tasks
	Spans     []string        // "nano.mt:12"; Task.Span indexes it

	// Well-known buffers.
	Tokens, Targets                                BufID // device, [Rows*T] i32, Parity: of micro-batch 0; that of micro-batch m is Tokens+m, Targets+m
	Positions                                      BufID // device, [Rows*T] i32: 0 to T-1 for each row, written by the engine at start-up
	HostTokens, HostTargets                        BufID // host, whole step, [Micros*Rows*T] i32, Parity
	Scalars                                        BufID // device copy of the step's scalars, Parity
	HostScalars                                    BufID // host block of the step's scalars, Parity
	HostRouters                                    BufID // host block the step's reports of routers arrive in, Parity
	Results                                        BufID // host block the step's results arrive in, Parity
	Partials                                       BufID // device, [Micros] pairs of float64; micro-batch m's pair is at byte 16*m
	HostPartials                                   BufID // host copy of Partials for a reduce on the host lane, else NoBuf
	Norms                                          BufID // one float64 for each slab (at byte 8*slab), where the norms are made
	Squares, HostSquares                           BufID // device, host: sums of squares of the blocks of every slab's gradient, float64, a slab's from SquaresOff on; NoBuf where none are made
	DeviceNorms                                    BufID // of slabs whose norms are made on the device where others are made on the host; report brings them to Norms
	GenTokens, GenPositions, GenLogits             BufID // generation: [Prefill] i32, [Prefill] i32, [Vocab] in the plan's precision
	HostGenTokens, HostGenPositions, HostGenLogits BufID

	// ResultsEvent is recorded in first, steady and eval when Results is complete.
	ResultsEvent int
}

// Value is a parameter of the model's text, as text: D is "768".
type Value struct {
	Name string `json:"name"`
	Text string `json:"value"`
}

// List numbers the task lists.
type List uint8

// The lists.
const (
	First List = iota
	Steady
	Drain
	Eval
	Prefill
	Decode
	NumLists
)

func (l List) String() string {
	return [...]string{"first", "steady", "drain", "eval", "prefill", "decode"}[l]
}

// Range is a half-open range of Plan.Tasks.
type Range struct{ Start, End int }

// Arena is one allocation.
type Arena struct {
	Name   string // "device.weights", "host.train"
	Memory device.Memory
	Bytes  int64
	// GenBytes is how much of it, from the start, generation alone needs; 0: nothing. A
	// process that only generates may allocate that much.
	GenBytes int64
}

// BufID indexes Plan.Buffers; NoBuf (0) is none: Buffers[0] is unused.
type BufID int32

// NoBuf is no buffer.
const NoBuf BufID = 0

// Buffer is a range of an arena with one purpose. A buffer with Parity has two copies, Bytes
// apart: even and odd steps use different ones.
type Buffer struct {
	Name   string
	Arena  int // index of Plan.Arenas
	Off    int64
	Bytes  int64 // of one copy
	Parity bool
}

// Slab is the parameters that travel and are updated together: those of one streaming unit,
// or one tied tensor. All its buffers have one layout: element i is parameter element i.
// Matrices (decayed) come first, then vectors. Gaps for alignment hold zeros.
type Slab struct {
	Name   string // "layer[3]", "wte"
	Elems  int64
	Decay  int64 // the first Decay elements have weight decay
	Params []Param
	// Frozen says that nothing of the slab learns: it has weights, in what the device computes in,
	// and neither a master's other half, nor moments, nor a gradient. Frozen slabs stand last.
	Frozen bool
	// Resident says that the slab lives on the device: weights, gradient and state are there,
	// and the compute lane updates it. Else they are on the host, and it streams.
	Resident bool
	// Home of the state: on the device when resident, else on the host. In f32 Weight
	// is the master, f32. In bf16 the master is split: Weight holds hi, what the device
	// computes with, and Lo the other 16 bits (split.go); M and V are f32.
	Weight, Lo, M, V BufID
	// Grad is where the whole step's gradient is when it is complete (host or device).
	Grad BufID
	// HalfGrad says that the gradient is rounded to bf16 before norm, link and update.
	HalfGrad bool
	// Scalars is the host copy of the step's scalars, as the slab's norm left them, that an
	// update reads which runs before they are complete: of a slab that streams without clipping.
	Scalars BufID
}

// Param is one parameter tensor.
type Param struct {
	Name  string // stable path: "layer[3].q.weight"
	Off   int64  // in elements, in the slab
	Shape []int64
	Decay bool
	Init  Init
}

// Init says how a parameter starts.
type Init struct {
	Kind  InitKind
	Scale float64 // standard deviation of normal, half width of uniform
}

// InitKind is a distribution.
type InitKind uint8

// The inits.
const (
	InitZero InitKind = iota
	InitOne
	InitNormal
	InitUniform
)

// Unit is a streaming unit: the embedding part, a block instance, ops between blocks, the head.
type Unit struct {
	Name     string // "embed", "layer[3]", "head"
	Template int    // index of Plan.Templates
	Slabs    []int  // slabs its template binds, in order
	Layer    int    // number among the block instances, -1 for others
	In, Out  []int  // the values between units it takes and gives, numbered as in the model; for the verifier
	Span     int
}

// Router is a router of a mixture of experts: its state lies on the device for the whole run,
// routing reads it, a step's counts are added to it, and an advance task moves it after the step.
type Router struct {
	Name    string // "layer[3].moe"
	Unit    int    // index of Plan.Units: the one that routes
	Kind    string // "threshold", "expert_choice" or "topk"
	Experts int64
	Slots   int64   // rows a token that memory is made for
	Mean    float64 // experts a token that it aims at
	Choice  int64   // steps in which experts choose; -1: all
	Hist    bool    // it keeps histograms of its logits
	State   BufID
	Routing BufID // generation: the routing of the tokens that ran last
	Report  int64 // bytes from the state's start to its report, which a step copies to
	At      int64 // this byte of Plan.HostRouters
	Reports int64 // bytes of it
	Kept    []RouterPart
}

// RouterPart is a part of a router's state that a checkpoint keeps.
type RouterPart struct {
	Name  string // "threshold"
	Off   int64  // bytes from the state's start
	Elems int64
	Bytes int64 // of an element: 4 f32, 8 f64
}

// Table is a constant tensor filled once at start-up by the program's function of the same index.
type Table struct {
	Name string
	Buf  BufID
}

// Kind is what a task does.
type Kind uint8

// The kinds of tasks.
const (
	Feed       Kind = iota // host tokens, targets or scalars to the device
	Prefetch               // a slab's weights to a device slot
	Compute                // a template function on one unit and micro-batch
	Norm                   // squared norm of a slab's gradient, where it was produced
	Offload                // a slab's gradient to the host
	Accumulate             // host: Dst += Src, Bytes of f32: a group's gradient to the step's
	Reduce                 // global norm, clip scale, skip flag, loss of the step
	Report                 // the step's results to the host
	Update                 // optimizer on one slab
	Save                   // activations to the host
	Restore                // activations from the host
	Round                  // Dst (bf16) = Src (f32), rounded to nearest: a slab's gradient as it crosses the link
	NumKinds
)

func (k Kind) String() string {
	return [...]string{"feed", "prefetch", "compute", "norm", "offload", "accumulate", "reduce", "report", "update", "save", "restore", "round"}[k]
}

// Func is which function of a template a compute task runs.
type Func uint8

// The functions of a template. A unit whose backward is never needed lacks it.
const (
	NoFunc    Func = iota
	Forward        // In -> Out, Saved
	Recompute      // In -> Saved (and what backward reads), no Out
	Backward       // In, Saved, DOut -> DIn, Grads
	Loss           // head: In, Targets -> DIn, Grads, Partials (forward, loss and backward, in row chunks)
	EvalLoss       // head: In, Targets -> Partials
	Infer          // In, State -> Out for generation; head: logits of the last row
	Again          // In -> Out, Saved: forward that keeps what backward reads, where inputs of layers are made again
	Advance        // Router, Scalars -> Router: moves the state of a router after a step
	NumFuncs
)

func (f Func) String() string {
	return [...]string{"", "forward", "recompute", "backward", "loss", "eval_loss", "infer", "again", "advance"}[f]
}

// Task is one entry of a list.
type Task struct {
	ID       int // index in Plan.Tasks
	List     List
	Kind     Kind
	Func     Func
	Lane     device.Lane
	Unit     int // index of Plan.Units, -1 when none
	Slab     int // index of Plan.Slabs for prefetch, norm, offload, accumulate, update; else -1
	Micro    int // -1 when none
	Template int // -1 when none
	Span     int // index of Plan.Spans
	// Back is how many steps before the current one the task belongs to (1: an update left
	// over from the previous step); parity buffers follow it.
	Back int

	// What it touches. Reads and Writes list every buffer, for the verifier and for inspect;
	// the Bind fields say which is which for a compute task.
	Reads, Writes []BufID
	Bind          Bind
	// Copies (feed, prefetch, offload, report, save, restore) move Bytes from Src to Dst, each at an offset.
	Src, Dst       BufID
	SrcOff, DstOff int64
	Bytes          int64

	Waits []Wait
	Event int // recorded after the task; -1 when nobody waits for it

	FLOPs int64
	Moved int64 // bytes read and written by the task
}

// Wait orders a task after the latest record of an event: Back 0 in this step (list), 1 in the one before.
type Wait struct {
	Event int
	Back  int
}

// Limits of a template's interface.
const (
	MaxIO    = 8 // values it takes, or gives
	MaxSlabs = 4 // slabs it binds
)

// SquaresBlock is the elements of a gradient whose squares are one sum (package squares).
const SquaresBlock = 1 << 15

// SquaresBlocks is the number of such sums of a gradient.
func SquaresBlocks(elems int64) int64 { return (elems + SquaresBlock - 1) / SquaresBlock }

// SquaresOff is where a slab's sums begin, in bytes; of the number of slabs that are trained, the
// size of all.
func (p *Plan) SquaresOff(slab int) int64 {
	var n int64
	for i := range p.Slabs[:slab] {
		n += SquaresBlocks(p.Slabs[i].Elems)
	}
	return 8 * n
}

// Bind gives a compute task's template function its buffers, in the order its template
// declares; NoBuf is a nil pointer (an i32 input has no gradient). Tasks on whole slabs use
// it too, and their Reads and Writes begin so:
//
//	norm        Reads Squares (at SquaresOff); Writes Norms (at 8*Slab). Scalars is bound with
//	            clipping off: a norm that is not finite sets ScalarSkip there
//	accumulate  Reads Src; Writes Dst; Add[0]: add (else set). Squares is bound for the last group
//	round       Reads Src; Writes Dst, Squares
//	reduce      Writes Scalars, in place: from Partials, when bound, loss and tokens; from
//	            Norms, when bound, the global norm; then the clip factor. ScalarSkip is set
//	            when one of them is not finite and never cleared. With clipping off a first
//	            reduce (Partials only) stands before the first update, and a last one (both)
//	            after all norms; evaluation's has Partials only
//	update      Reads Grads[0], Scalars; reads and writes Weights[0], Lo where the plan has it,
//	            and Moments: the whole slab
type Bind struct {
	In, Out, DIn, DOut []BufID
	Saved, Work        BufID
	Weights, Grads     []BufID  // one for each slab of the unit
	Add                []bool   // for each slab: gradients add to what the slot holds
	Whole              []bool   // for each slab: its gradient is complete with this task, which makes its part of Squares; nil: none is
	Squares            BufID    // backward, loss, round, accumulate, norm: Plan.Squares or HostSquares
	State              BufID    // generation caches of this unit
	Router             BufID    // state of the unit's router
	Targets            BufID    // loss, eval_loss: targets of this micro-batch
	Partials           BufID    // loss, eval_loss: Plan.Partials (the pair of Micro); reduce: all pairs
	Scalars            BufID    // loss, norm, reduce, update: the scalars block
	Norms              BufID    // norm, reduce
	Lo                 BufID    // update: the other half of the master
	Moments            [2]BufID // update: m and v
}

// Train holds the run's defaults; the program's flags override those that do not change the schedule.
type Train struct {
	Data      []string // patterns, absolute or relative to the .mt
	Width     int      // bytes a token of headerless .bin shards; 0: by header; 1: bytes
	Steps     int64
	Epochs    int64 // 0: by steps; else these many times over the data, and Steps follow from that
	Optimizer AdamW
	LR        Schedule
	Clip      float64 // 0: off
	EvalEvery int64   // 0: off
	EvalData  []string
	Holdout   float64 // share of Data's files that are evaluated and never trained on; EvalData is then empty
	EvalSteps int64   // batches an evaluation, 0: all of the data
	SaveEvery int64   // 0: only at the end
	SaveKeep  int64
	Seed      int64
}

// AdamW are the optimizer's constants (Loshchilov and Hutter, arXiv 1711.05101).
type AdamW struct{ Beta1, Beta2, Eps, Decay float64 }

// Schedule is a learning-rate schedule with linear warm-up.
type Schedule struct {
	Kind   string // "constant", "linear", "cosine", "wsd"
	Peak   float64
	Final  float64
	Warmup int64
	Decay  int64 // wsd: steps of the final decay
}
