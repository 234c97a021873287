// Package ir holds the compiler's two intermediate forms: the typed graph of a model
// (model.go, graph.go), where every value has a dtype, a shape in named dims and a source
// span; and the templates made from it (template.go), the launches of each function of a
// unit with a place for every value. It is data with printers, no passes.
package ir

import (
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Model is a checked model: names resolved, constants evaluated, blocks inlined, every
// streaming unit with its graph.
type Model struct {
	Name   string
	Span   source.Span
	File   *source.File   // the file given to the compiler
	Files  []*source.File // every file read, File first, in order of use
	Consts []Const        // the model's parameters and their values, in declaration order

	// Batch and Seq are B and T, 0 while symbolic (no train block).
	Batch, Seq int64
	Vocab      int64 // rows of the embedding that reads `tokens`

	Values []*Value // activations that pass between units, and the inputs tokens and position
	Units  []*Unit  // in forward order: embed, block instances (and ops between them), head
	Params []*Param // in forward order of first use, each once
	Maps   []*WeightMap

	Routers []*Router // of mixtures of experts, in forward order
	LoRA    *LoRA     // nil: everything learns

	Train *Train // nil without a train block
}

// Const is a resolved model parameter.
type Const struct {
	Name  string
	Value op.Value
	From  string // "default", "preset medium", "instance qwen2_5_7b", "--set"
}

// UnitKind tells the place of a unit.
type UnitKind uint8

// The kinds of units.
const (
	EmbedUnit UnitKind = iota // ops before the first block
	LayerUnit                 // a block instance
	GlueUnit                  // weightless ops between blocks
	HeadUnit                  // ops after the last block; its output is the logits
)

// Unit is a streaming unit.
type Unit struct {
	Kind    UnitKind
	Name    string // "embed", "layer", "head": what equal instances share
	Index   int    // k of name[k], -1 when the path has no index
	Span    source.Span
	Graph   *Graph
	Inputs  []*Value // model values bound to Graph.Inputs
	Outputs []*Value // model values bound to Graph.Outputs; the head's is the logits
	Params  []*Param // bound to Graph.Weights

	// A block with a mixture of experts is cut into several units: Part is "" for the first,
	// "observe" and "route" for those between, "experts" for what follows; Cut counts the
	// mixtures before it. Router is the router of a part.
	Part   string
	Cut    int
	Router *Router
}

// Router is a router of a mixture of experts.
type Router struct {
	Path    string // "layer[3].moe"
	Experts int64
	Slots   int64   // rows a token that memory is made for
	Mean    float64 // experts a token that it aims at
	Attr    map[string]op.Value
	Span    source.Span
}

// Path is "layer[3]", "layer[3].experts" or "embed".
func (u *Unit) Path() string {
	s := u.Name
	if u.Index >= 0 {
		s += "[" + itoa(u.Index) + "]"
	}
	return s + u.part()
}

// Kin is what equal units share of their names: "layer", "layer.experts".
func (u *Unit) Kin() string { return u.Name + u.part() }

func (u *Unit) part() string {
	switch n := u.Cut; {
	case u.Part == "":
		return ""
	case u.Part == "experts" && n > 1:
		return "." + u.Part + itoa(n)
	case u.Part != "experts" && n > 0:
		return "." + u.Part + itoa(n+1)
	}
	return "." + u.Part
}

// Param is one parameter tensor of the model. A tied tensor is one Param bound by several units.
type Param struct {
	Path  string // "layer[3].q.weight", "wte.weight"
	Shape tensor.Shape
	Role  op.Role
	Init  plan.Init
	Span  source.Span
	Uses  int // number of units that bind it
	// Frozen says that it never learns.
	Frozen bool
	// Parts, when not nil, are the parameters of a model that this one consists of, one after
	// another: the same weight of each expert. It is then no parameter of the model itself.
	Parts []*Param
}

// Each lists the parameters of the model that p is: its parts, else itself.
func (p *Param) Each() []*Param {
	if p.Parts != nil {
		return p.Parts
	}
	return []*Param{p}
}

// Elems is the number of elements.
func (p *Param) Elems() int64 { return p.Shape.Elems() }

// WeightMap is a checked `weights NAME { ... }`.
type WeightMap struct {
	Name    string
	Entries []WeightMapEntry
}

// WeightMapEntry ties foreign tensors to parameters, indices expanded.
type WeightMapEntry struct {
	Targets []*Param
	Op      string   // "", "transpose", "split", "join", "split(transpose"
	Names   []string // foreign tensor names
	Also    []string // other names that the tensor may have too (`same`)
	Span    source.Span
}

// Train is the checked train block: the values that shape the schedule, and the run's defaults.
type Train struct {
	Span        source.Span
	BatchTokens int64 // tokens a step = Batch * Seq
	Precision   string
	Documents   bool // several documents share a row, and are kept apart
	Run         plan.Train
	Fields      map[string]source.Span // where values in force stand, by field
}

// At is where the value of a field of the train block stands; else the block, else the model's name.
func (m *Model) At(field string) source.Span {
	switch t := m.Train; {
	case t == nil:
	case t.Fields[field].Valid():
		return t.Fields[field]
	case t.Span.Valid():
		return t.Span
	}
	return m.Span
}

// LoRA is the adapters that learn where all else is frozen.
type LoRA struct {
	Span    source.Span
	Rank    int64
	Alpha   float64
	Targets []*LoRATarget // in forward order
}

// LoRATarget is a linear that gets an adapter. A and B are its parameters, from the adapters
// pass on.
type LoRATarget struct {
	Unit   *Unit
	Node   *Node
	Weight *Param
	A, B   *Param
}

// NumParams is the number of parameters, tied ones once.
func (m *Model) NumParams() int64 {
	var n int64
	for _, p := range m.Params {
		n += p.Elems()
	}
	return n
}
