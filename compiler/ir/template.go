package ir

import (
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Program is a model lowered to templates: what the schedule builder and codegen read.
type Program struct {
	Model   *Model
	Rows    int64        // sequences of one micro-batch
	Prefill int64        // positions of a prefill chunk
	DType   tensor.DType // what the device computes in: activations and its copy of the weights
	// Documents says that documents share rows. The targets of a micro-batch are then followed
	// by the start of each position's document in its row, and by its place in the document,
	// i32 [Rows*T] each.
	Documents bool
	Templates []*Template
	Slabs     []*Slab
	Units     []*UnitBinding
	Tables    []*TableBuf
}

// Slab groups parameters that travel together: all parameters used by one unit alone, or one
// tied parameter. Matrices first, then vectors, offsets aligned to 16 elements.
type Slab struct {
	Name   string
	Params []*Param
	Offs   []int64 // in elements, one for each parameter
	Elems  int64   // including alignment gaps
	Decay  int64   // the first Decay elements have weight decay
	Frozen bool    // none of it learns; frozen slabs stand last
}

// UnitBinding joins a unit to its template and slabs.
type UnitBinding struct {
	Unit     *Unit
	Template int
	Slabs    []int // indices of Program.Slabs in the order of Template.Slabs
	In, Out  []int // indices of Model.Values: what passes between units (the head's logits do not)
}

// TableBuf is a constant table shared by equal calls.
type TableBuf struct {
	Name  string
	Room  string // Go package of the function
	Table op.Table
}

// Template is the code of one kind of unit, stateless: weights, gradients, activations and
// work memory are bound at each call.
type Template struct {
	Name       string // "layer", "layer2"
	Span       source.Span
	Graph      *Graph
	Slabs      []SlabLayout             // for each slab it binds: offsets of its weights
	Funcs      [plan.NumFuncs]*Function // nil where a template has none
	In, Out    []tensor.Type            // types of the activations it takes and gives, micro-batch sizes; the head's Out is one row of logits (infer)
	DIn        []GradMode               // for each input: whether backward (or loss) makes its gradient, and how
	DOut       []bool                   // for each output: whether backward reads its gradient
	SavedBytes int64                    // size of the Saved region
	StateBytes int64                    // size of the generation state of one instance
	Gen        []tensor.Type            // as Out, of a chunk in generation
	Recompute  bool                     // backward runs Recompute first, into shared memory
}

// GradMode says what a template does with the gradient of an input. A value that several
// units read gets contributions in backward order: the first sets it, later ones add.
type GradMode uint8

// The modes.
const (
	GradNone GradMode = iota // no gradient: tokens, or nothing that learns lies behind
	GradSet                  // writes DIn
	GradAdd                  // adds to what DIn holds, in place
)

func (m GradMode) String() string { return [...]string{"none", "set", "add"}[m] }

// SlabLayout gives the offset of each weight of a template in one slab.
type SlabLayout struct {
	Weights []int   // indices of Graph.Weights
	Offs    []int64 // in elements
	Elems   int64
	Frozen  bool // no gradients
}

// Function is a list of statements over places.
type Function struct {
	Func      plan.Func
	Body      []Stmt
	WorkBytes int64 // size of the Work region it needs
	FLOPs     int64
	Moved     int64
}

// Stmt is *Call, *Loop, *IfFirst or *IfWhole. The memory that a function is bound to must not overlap
// between regions and indices (DIn with DOut, say): one call reads and writes all of it.
type Stmt interface{ stmt() }

// Call launches one launcher of a room.
type Call struct {
	Op     *op.Call
	Launch *op.Launch
	Args   []Arg // operands, in the order Reads, Writes, Add operands
	Span   source.Span
}

// Arg binds one operand field.
type Arg struct {
	Field string // Go field of the argument struct
	Place Place
}

// Loop runs Body over chunks of rows: the head's logits never exist for all rows at once.
// Inside it CRows is the chunk's rows, and Places with RowBytes move with the row. RGradAdd
// is nil for the first chunk of a first contribution only; later chunks add.
type Loop struct {
	Rows  int64 // all rows
	Chunk int64 // rows of one pass, the last may be shorter
	Last  bool  // generation: run Body once, for the last of the binding's rows (Rows and Chunk are 1)
	Body  []Stmt
}

// IfFirst runs Body only when the gradients of a slab are not added to (Binding.Add is
// false): it zeroes what no launch writes.
type IfFirst struct {
	Slab int // index of Template.Slabs
	Body []Stmt
}

// IfWhole runs Body only when the gradient of a slab is complete with this call of the function
// (Binding.Squares is bound): it makes the sums of its squares.
type IfWhole struct {
	Slab int // index of Template.Slabs
	Body []Stmt
}

func (*IfWhole) stmt() {}
func (*Call) stmt()    {}
func (*Loop) stmt()    {}
func (*IfFirst) stmt() {}

// Region is where a place lies.
type Region uint8

// The regions a template function is bound to.
const (
	RNil Region = iota // no operand: a nil pointer
	RIn                // Index: input
	ROut
	RDIn
	RDOut
	RSaved
	RWork
	RWeight  // Index: slab
	RGrad    // Index: slab
	RGradAdd // the add operand of RGrad: the same place, or nil for the first contribution of a step
	RState
	RTable // Index: Program.Tables
	RTargets
	RScalars
	RPartials
	RRouter   // the state of the unit's router
	RSlabGrad // Index: slab; all of its gradient
	RSquares  // Index: slab; the sums of squares of its gradient
)

// Place is a region and a byte offset.
type Place struct {
	Region   Region
	Index    int
	Off      int64
	RowBytes int64  // inside a Loop: bytes to add for each row before the chunk; 0: fixed
	Name     string // what it holds, for readable code: "h", "dx", "q.weight"
	Value    string // its shape, "[B, T, D = 64]", for comments: the same for every device
	DType    tensor.DType
}
