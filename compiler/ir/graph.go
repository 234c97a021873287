package ir

import (
	"strconv"

	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Graph is the forward computation of one unit, blocks inlined and conditions taken, in
// evaluation order. It names no instance: weights are slots. Equal instances of a block
// share one *Graph after the templates pass; before it each has its own.
type Graph struct {
	Name        string // "layer"
	Span        source.Span
	Inputs      []*Value
	Outputs     []*Value
	Weights     []*Weight
	Nodes       []*Node
	NoRecompute bool // the policy for this unit: keep what backward reads instead of recomputing it
}

// Value is a tensor in a graph or between units.
type Value struct {
	Name string // the variable it was bound to, or a name made from the op
	Type tensor.Type
	Span source.Span
	Node *Node      // producer, nil for graph inputs and model values
	Full tensor.Dim // the last dim in generation where it is another one there (a routing), else zero
}

// Weight is a slot of a graph: which tensor fills it differs by instance.
type Weight struct {
	Path  string // path within the unit: "q.weight", "attn.q.weight"
	Shape tensor.Shape
	Role  op.Role
	Span  source.Span
	// Frozen says that it has no gradient.
	Frozen bool
}

// Node is one op.
type Node struct {
	Call    *op.Call
	Inputs  []*Value  // in the order of Call.Inputs
	Weights []*Weight // in the order of Call.Weights
	Out     *Value
	Span    source.Span // of the call or the operator
	Label   string      // label or variable that names its weights, "" when none
}

func itoa(n int) string { return strconv.Itoa(n) }
