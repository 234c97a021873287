// Package ast is the syntax tree of a .mt file: what was written, before any name is
// looked up or any constant evaluated. Every node has a span. Nodes are plain data; the
// parser makes them, the formatter prints them, the compiler reads them.
package ast

import "github.com/megatrain/mtc/lang/source"

// Node is anything with a place in the text.
type Node interface{ Pos() source.Span }

// File is a whole source file.
type File struct {
	Source   *source.File
	Decls    []Decl
	Comments []Comment // all comments, in order of appearance
}

// Comment is one `// ...` comment, text without the slashes' line end.
type Comment struct {
	Span source.Span
	Text string // including the leading "//"
	Own  bool   // stands alone on its line
}

// Decl is *Use, *Model or *Train.
type Decl interface {
	Node
	decl()
}

// Use is `use "path"`.
type Use struct {
	Span     source.Span
	Path     string
	PathSpan source.Span
}

// Model is a model with a body, or an instance of another one (`model a = b(D = 1)`).
type Model struct {
	Span     source.Span
	Name     Ident
	Params   []*Param
	Instance *Call // not nil for `model a = b(...)`; then the fields below are empty
	Presets  []*Preset
	Inits    []*Init // more than one is an error of the compiler
	Blocks   []*Block
	Forwards []*Forward // exactly one, checked by the compiler
	Weights  []*Weights
}

// Param is `D = 768` or `D`, of a model or a block.
type Param struct {
	Span    source.Span
	Name    Ident
	Default Expr // nil when none
}

// Preset is `preset medium { D = 1024, L = 24 }`.
type Preset struct {
	Span source.Span
	Name Ident
	Args []*Arg // all named
}

// Init is `init normal(0.02)`.
type Init struct {
	Span  source.Span
	Value Expr
}

// Block is `block layer(x, width = 4) { ... }`.
type Block struct {
	Span   source.Span
	Name   Ident
	Params []*Param
	Body   []Stmt
}

// Forward is `forward(tokens) { ... }`.
type Forward struct {
	Span   source.Span
	Params []*Param
	Body   []Stmt
}

// Weights is `weights hf { ... }`.
type Weights struct {
	Span source.Span
	Name Ident
	Body []WeightStmt
}

// WeightStmt is *WeightEntry or *WeightIf.
type WeightStmt interface {
	Node
	weightStmt()
}

// WeightEntry is `layer[i].q, layer[i].k = split("h.{i}.qk")`.
type WeightEntry struct {
	Span    source.Span
	Targets []WeightPath
	Value   Expr // a string, or calls of transpose / split / join around strings
}

// WeightIf is `if tied { ... } else { ... }` in a weights map.
type WeightIf struct {
	Span source.Span
	Cond Expr
	Then []WeightStmt
	Else []WeightStmt

	HasElse bool
}

// WeightPath is `layer[i].attn.q`.
type WeightPath struct {
	Span  source.Span
	Parts []WeightPart
}

// WeightPart is one part of a path, with its index when it has one.
type WeightPart struct {
	Name  Ident
	Index *Ident // `[i]`, nil without
}

// Train is `train { ... }`.
type Train struct {
	Span   source.Span
	Fields []*Field
}

// Field is `batch = 524288 tokens`; `lora(...)` is short for `lora = lora(...)`.
type Field struct {
	Span  source.Span
	Name  Ident
	Value Expr
	Unit  *Ident // nil without
}

// Stmt is *Assign, *CallStmt, *If, *Repeat or *Return.
type Stmt interface {
	Node
	stmt()
}

// Assign is `x = e` or `x += e`.
type Assign struct {
	Span   source.Span
	Target Ident
	Add    bool // `+=`
	OpSpan source.Span
	Value  Expr
}

// CallStmt is a block call that stands alone: `layer(x)` or `layer: dense(x)`.
type CallStmt struct {
	Span source.Span
	Call *Call
}

// If is a static condition.
type If struct {
	Span    source.Span
	Cond    Expr
	Then    []Stmt
	Else    []Stmt
	HasElse bool
}

// Repeat is `repeat n as i { ... }`.
type Repeat struct {
	Span  source.Span
	Count Expr
	Var   *Ident // nil without `as`
	Body  []Stmt
}

// Return is `return e`.
type Return struct {
	Span  source.Span
	Value Expr
}

// Expr is any expression node.
type Expr interface {
	Node
	expr()
}

// Ident is a name.
type Ident struct {
	Span source.Span
	Name string
}

// Int is a whole number that fits 64 bits.
type Int struct {
	Span  source.Span
	Value int64
}

// Float is a number with a point or an exponent. Text keeps how it was written.
type Float struct {
	Span  source.Span
	Value float64
	Text  string
}

// Bool is true or false.
type Bool struct {
	Span  source.Span
	Value bool
}

// None is `none`.
type None struct{ Span source.Span }

// String is a quoted string, unescaped in Value.
type String struct {
	Span  source.Span
	Value string
}

// Unary is `-e`.
type Unary struct {
	Span source.Span
	Op   string // "-" or "not"
	X    Expr
}

// Binary is `a op b`; Op is one of + - * / % == != < <= > >= and or.
type Binary struct {
	Span   source.Span
	Op     string
	OpSpan source.Span
	X, Y   Expr
}

// Cond is `if c then a else b`.
type Cond struct {
	Span       source.Span
	If         Expr
	Then, Else Expr
}

// Paren is `(e)`.
type Paren struct {
	Span source.Span
	X    Expr
}

// List is `[a, b]`: names, in the train block.
type List struct {
	Span  source.Span
	Items []Expr
}

// Call is `label: callee(args)`.
type Call struct {
	Span   source.Span
	Label  *Ident // nil without
	Callee Ident
	Args   []*Arg
}

// Arg is `value` or `name = value`.
type Arg struct {
	Span  source.Span
	Name  *Ident // nil when positional
	Value Expr
}

// Pos implementations.

func (n *Use) Pos() source.Span         { return n.Span }
func (n *Model) Pos() source.Span       { return n.Span }
func (n *Train) Pos() source.Span       { return n.Span }
func (n *WeightEntry) Pos() source.Span { return n.Span }
func (n *WeightIf) Pos() source.Span    { return n.Span }
func (n *Assign) Pos() source.Span      { return n.Span }
func (n *CallStmt) Pos() source.Span    { return n.Span }
func (n *If) Pos() source.Span          { return n.Span }
func (n *Repeat) Pos() source.Span      { return n.Span }
func (n *Return) Pos() source.Span      { return n.Span }
func (n *Ident) Pos() source.Span       { return n.Span }
func (n *Int) Pos() source.Span         { return n.Span }
func (n *Float) Pos() source.Span       { return n.Span }
func (n *Bool) Pos() source.Span        { return n.Span }
func (n *None) Pos() source.Span        { return n.Span }
func (n *String) Pos() source.Span      { return n.Span }
func (n *Unary) Pos() source.Span       { return n.Span }
func (n *Binary) Pos() source.Span      { return n.Span }
func (n *Cond) Pos() source.Span        { return n.Span }
func (n *Paren) Pos() source.Span       { return n.Span }
func (n *List) Pos() source.Span        { return n.Span }
func (n *Call) Pos() source.Span        { return n.Span }
func (n *Arg) Pos() source.Span         { return n.Span }

func (*Use) decl()   {}
func (*Model) decl() {}
func (*Train) decl() {}

func (*WeightEntry) weightStmt() {}
func (*WeightIf) weightStmt()    {}

func (*Assign) stmt()   {}
func (*CallStmt) stmt() {}
func (*If) stmt()       {}
func (*Repeat) stmt()   {}
func (*Return) stmt()   {}

func (*Ident) expr()  {}
func (*Int) expr()    {}
func (*Float) expr()  {}
func (*Bool) expr()   {}
func (*None) expr()   {}
func (*String) expr() {}
func (*Unary) expr()  {}
func (*Binary) expr() {}
func (*Cond) expr()   {}
func (*Paren) expr()  {}
func (*List) expr()   {}
func (*Call) expr()   {}
