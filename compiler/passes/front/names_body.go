package front

import (
	"sort"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag/suggest"
	"github.com/megatrain/mtc/runtime/op"
)

// nameKind is what is known of a name before anything is evaluated.
type nameKind uint8

const (
	constName  nameKind = iota + 1 // a constant: parameter of the model, `as i`
	tensorName                     // a variable
	eitherName                     // a block's parameter without default: what the caller passes
)

// initParam is what the value of `init` may be.
var initParam = &op.Param{Name: "init", Kind: op.InitKind}

// names checks the names of one body.
type names struct {
	s       *State
	model   *ast.Model
	block   *ast.Block // nil outside one
	forward bool
	vals    map[string]nameKind
	later   map[string]bool // parameters declared after the value being checked
	labels  map[string]bool // labels of this body, for ties
	repeats int             // nesting
}

// newNames sees nothing but T.
func (s *State) newNames(m *ast.Model) *names {
	return &names{s: s, model: m, vals: map[string]nameKind{"T": constName}, later: map[string]bool{}}
}

// bodyNames sees the model's parameters.
func (s *State) bodyNames(m *ast.Model) *names {
	n := s.newNames(m)
	for _, p := range m.Params {
		n.vals[p.Name.Name] = constName
	}
	return n
}

func (n *names) inScope(name string) bool { return n.vals[name] != 0 }

// scope lists the names in scope, sorted.
func (n *names) scope() []string {
	out := make([]string, 0, len(n.vals))
	for name := range n.vals {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}

func (n *names) body(list []ast.Stmt) {
	for i, st := range list {
		n.stmt(st)
		if r, ok := st.(*ast.Return); ok && i+1 < len(list) {
			n.s.errorf(codeReturn, list[i+1].Pos(), "nothing after `return` is reached").
				Also(headSpan(r.Span, "return"), "returns here").
				Hint("move it above `return`, or remove it")
			return
		}
	}
}

func (n *names) stmt(st ast.Stmt) {
	switch st := st.(type) {
	case *ast.Assign:
		n.assign(st)
	case *ast.CallStmt:
		n.callStmt(st)
	case *ast.If:
		n.expr(st.Cond, nil)
		// Each branch sees what stood before; after the `if` both branches' names may be set.
		before := copyNames(n.vals)
		n.body(st.Then)
		then := n.vals
		n.vals = before
		n.body(st.Else)
		for k, v := range then {
			if n.vals[k] == 0 {
				n.vals[k] = v
			}
		}
	case *ast.Repeat:
		n.repeat(st)
	case *ast.Return:
		if n.repeats > 0 {
			n.s.errorf(codeReturn, headSpan(st.Span, "return"), "`return` cannot stand in a `repeat`").Hint("return after it")
		}
		n.expr(st.Value, tensorParam)
	}
}

func copyNames(m map[string]nameKind) map[string]nameKind {
	out := make(map[string]nameKind, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// tensorParam marks a place that takes a tensor.
var tensorParam = &op.Param{Name: "value", Kind: op.Tensor}

func (n *names) assign(st *ast.Assign) {
	n.expr(st.Value, tensorParam)
	name := st.Target.Name
	switch {
	case builtins[name] != "":
		n.s.errorf(codeBuiltin, st.Target.Span, "`%s` is built in and cannot be assigned", name).
			Note("`%s` is %s", name, builtins[name]).Hint("choose another name")
	case n.vals[name] == constName:
		n.s.errorf(codeTwice, st.Target.Span, "`%s` is a constant and cannot be assigned", name).
			Hint("choose another name for the variable")
	case st.Add && n.vals[name] == 0:
		d := n.s.errorf(codeUnknown, st.Target.Span, "`+=` adds to `%s`, which has no value yet", name)
		if h := suggest.Hint(name, n.tensors()); h != "" {
			d.Hint("%s", h)
		} else {
			d.Hint("write `%s = ...` first", name)
		}
		n.vals[name] = tensorName
	case n.vals[name] == 0:
		n.vals[name] = tensorName
	}
}

func (n *names) tensors() []string {
	var out []string
	for _, name := range n.scope() {
		if n.vals[name] != constName {
			out = append(out, name)
		}
	}
	return out
}

// callStmt checks a call that stands alone: a block without return, on plain variables.
func (n *names) callStmt(st *ast.CallStmt) {
	c := st.Call
	b := blockOf(n.model, c.Callee.Name)
	if b == nil {
		if d := n.s.In.Ops.Lookup(c.Callee.Name); d != nil && !d.Hidden {
			n.s.errorf(codeForm, st.Span, "nothing takes the result of `%s`", c.Callee.Name).
				Hint("bind it: `x = %s`", st.Span.Text())
			n.call(c, tensorParam, true)
			return
		}
		n.call(c, tensorParam, true)
		return
	}
	if hasReturn(b.Body) {
		n.s.errorf(codeForm, c.Callee.Span, "block `%s` returns a value, which nothing takes", b.Name.Name).
			Hint("bind it: `x = %s`", st.Span.Text())
	}
	n.call(c, tensorParam, true)
}

func (n *names) repeat(st *ast.Repeat) {
	n.expr(st.Count, &op.Param{Name: "repeat", Kind: op.Int})
	if !n.forward {
		n.s.errorf(codeForm, headSpan(st.Span, "repeat"), "`repeat` stands in `forward` only").
			Hint("a block is what is repeated: `repeat n { %s(x) }` in `forward`", n.block.Name.Name)
	}
	outer := n.vals
	if v := st.Var; v != nil {
		n.vals = copyNames(outer)
		switch {
		case !n.s.notBuiltin(*v, "the variable of a `repeat`"):
		case n.vals[v.Name] != 0:
			n.s.errorf(codeTwice, v.Span, "`%s` is declared already", v.Name).Hint("choose another name after `as`")
		default:
			n.vals[v.Name] = constName
		}
	}
	n.repeats++
	n.body(st.Body)
	n.repeats--
	if st.Var != nil {
		for k, v := range n.vals {
			if outer[k] == 0 && k != st.Var.Name {
				outer[k] = v
			}
		}
		n.vals = outer
	}
}

// expr checks an expression that goes to p; nil: a constant or a tensor, unknown which.
func (n *names) expr(e ast.Expr, p *op.Param) {
	switch e := e.(type) {
	case *ast.Paren:
		n.expr(e.X, p)
	case *ast.Unary:
		n.expr(e.X, operand(p))
	case *ast.Binary:
		n.expr(e.X, operand(p))
		n.expr(e.Y, operand(p))
	case *ast.Cond:
		n.expr(e.If, intParam)
		n.expr(e.Then, p)
		n.expr(e.Else, p)
	case *ast.Ident:
		n.ident(e, p)
	case *ast.Call:
		n.call(e, p, false)
	}
}

// intParam is a place where neither words nor tensors make sense.
var intParam = &op.Param{Name: "value", Kind: op.Int}

// operand is what an operand of an operator may be: words have no operators but == and !=,
// for which any word of any op may stand.
func operand(p *op.Param) *op.Param {
	if p != nil && p.Kind == op.Tensor {
		return p
	}
	return nil
}

func (n *names) ident(e *ast.Ident, p *op.Param) {
	name := e.Name
	if p != nil && p.Kind == op.TieKind {
		n.tie(e)
		return
	}
	if n.inScope(name) {
		return
	}
	wordPlace := p == nil || p.Kind == op.Word || p.Kind == op.InitKind
	if wordPlace && n.s.isWord(name, p) {
		return
	}
	s := n.s
	switch {
	case n.later[name]:
		s.errorf(codeUnknown, e.Span, "`%s` is declared later", name).
			Hint("a value names only parameters that stand before it; move `%s` to the front", name)
		return
	case name == "B":
		s.errorf(codeNotConst, e.Span, "`B` is not a constant: the planner cuts a step's rows into micro-batches").
			Hint("shapes get `B` from `tokens`")
		return
	case name == "tokens" || name == "position":
		d := s.errorf(codeUnknown, e.Span, "`%s` is seen in `forward` only", name)
		if n.block != nil {
			d.Hint("pass it on: `%s(x, %s)`", n.block.Name.Name, name)
		}
		return
	}
	var cands []string
	what := "nothing here is called `" + name + "`"
	if p != nil && (p.Kind == op.Word || p.Kind == op.InitKind) {
		what = "`" + p.Name + "` cannot be `" + name + "`"
		w, ctors := s.words(p)
		cands = append(cands, w...)
		for _, c := range ctors {
			cands = append(cands, c.Name)
		}
		if p.Default != nil && p.Default.IsNone() {
			cands = append(cands, "none")
		}
		if h := suggest.HintOr(name, cands); suggest.Nearest(name, append(cands, n.scope()...)) == "" {
			s.errorf(codeUnknown, e.Span, "%s", what).Hint("%s", h)
			return
		}
	}
	d := s.errorf(codeUnknown, e.Span, "%s", what)
	if p != nil && p.Kind == textKind {
		d.Hint("a path stands in quotes: `\"%s\"`", name)
		return
	}
	if def := s.In.Ops.Lookup(name); def != nil && !def.Hidden {
		d.Hint("`%s` is an op: call it, `%s(x)`", name, name)
		return
	}
	if blockOf(n.model, name) != nil {
		d.Hint("`%s` is a block: call it, `%s(x)`", name, name)
		return
	}
	if n.labels[name] {
		d.Note("`%s` is a label: it names weights, not a value", name)
		d.Hint("bind the value to a variable: `%s = ...`", name)
		return
	}
	cands = append(cands, n.scope()...)
	if p == nil {
		w, _ := s.words(nil)
		cands = append(cands, w...)
	}
	if h := suggest.Hint(name, append(cands, "true", "false", "none")); h != "" {
		d.Hint("%s", h)
	} else if in := n.scope(); len(in) > 1 {
		d.Hint("in scope are %s", suggest.List(in))
	}
}

// tie checks that a tied label exists in this body or in forward.
func (n *names) tie(e *ast.Ident) {
	fw := n.s.labels[n.model].forward
	if n.labels[e.Name] || fw[e.Name] {
		return
	}
	var all []string
	for l := range n.labels {
		all = append(all, l)
	}
	for l := range fw {
		all = append(all, l)
	}
	sort.Strings(all)
	d := n.s.errorf(codeUnknown, e.Span, "`tie` takes the label of a weight, and there is no `%s`", e.Name)
	d.Hint("%s", suggest.HintOr(e.Name, all))
}

// call checks a call and its arguments. stmt: it stands alone.
func (n *names) call(c *ast.Call, p *op.Param, stmt bool) {
	s, name := n.s, c.Callee.Name
	b := &binder{s: s, inScope: n.inScope, scope: n.scope}
	constant := p != nil && p.Kind != op.Tensor
	if p != nil && p.Kind == op.TieKind {
		s.errorf(codeTie, c.Span, "`tie` takes a label, not a call").Hint("write `tie = wte`")
		return
	}
	if c.Label != nil && constant {
		s.errorf(codeForm, c.Label.Span, "a constant takes no label").Hint("remove `%s:`", c.Label.Name)
	}
	if p != nil && p.Kind == op.BlockKind {
		blk := blockOf(n.model, name)
		if blk == nil {
			n.unknownCallee(c, blockNames(n.model))
			return
		}
		b.partial = true
		n.args(b, textSig("block", blk.Name, blk.Params), c)
		return
	}
	if p == nil || constant {
		_, ctors := s.words(p)
		if p != nil && p.Kind != op.Word && p.Kind != op.InitKind {
			ctors = nil
		}
		// A name that is both (rope's scaling `linear` and the op) is the constructor only
		// where a word is wanted.
		if ct := findCtor(ctors, name); ct != nil && (p != nil || s.In.Ops.Lookup(name) == nil || !n.anyTensor(c)) {
			n.args(b, declSig("word", ct.Name, ct.Params), c)
			return
		}
	}
	if fn := findCtor(functions, name); fn != nil {
		if c.Label != nil && !constant {
			s.errorf(codeForm, c.Label.Span, "a constant takes no label").Hint("remove `%s:`", c.Label.Name)
		}
		n.args(b, declSig("function", fn.Name, fn.Params), c)
		return
	}
	if blk := blockOf(n.model, name); blk != nil {
		if !stmt && !hasReturn(blk.Body) {
			s.errorf(codeForm, c.Callee.Span, "block `%s` returns no value", name).
				Also(blk.Name.Span, "declared here").
				Hint("call it as a statement, `%s(x)`, or end it with `return`", name)
		}
		n.args(b, textSig("block", blk.Name, blk.Params), c)
		if stmt && !hasReturn(blk.Body) {
			n.plainVariables(blk, c)
		}
		return
	}
	if d := s.In.Ops.Lookup(name); d != nil && !d.Hidden {
		n.args(b, opSig(d), c)
		return
	}
	if indexOf(notYet, name) >= 0 {
		s.errorf(codeNotYet, c.Callee.Span, "`%s` is not available in this version", name)
		return
	}
	cands := append(s.In.Ops.Names(), blockNames(n.model)...)
	if p != nil && (p.Kind == op.Word || p.Kind == op.InitKind) {
		cands = nil
	}
	if p == nil || constant {
		_, ctors := s.words(p)
		for _, ct := range ctors {
			cands = append(cands, ct.Name)
		}
	}
	for _, fn := range functions {
		cands = append(cands, fn.Name)
	}
	n.unknownCallee(c, cands)
}

// notYet are ops the language has and this version does not.
var notYet = []string{"moe"}

// anyTensor reports whether some argument is certainly a tensor.
func (n *names) anyTensor(c *ast.Call) bool {
	for _, a := range c.Args {
		if n.s.makesTensor(a.Value, func(name string) bool { return n.vals[name] > constName }) {
			return true
		}
	}
	return false
}

func (n *names) unknownCallee(c *ast.Call, cands []string) {
	s, name := n.s, c.Callee.Name
	d := s.errorf(codeUnknown, c.Callee.Span, "there is no op or block `%s`", name)
	if hidden := s.In.Ops.Lookup(name); hidden != nil && hidden.Hidden {
		switch name {
		case "add", "sub", "mul", "scale":
			d.Hint("write the operator: `%s`", map[string]string{"add": "a + b", "sub": "a - b", "mul": "a * b", "scale": "0.5 * x"}[name])
			return
		case "swiglu":
			d.Hint("write `silu(gate) * up`: the compiler fuses it")
			return
		}
	}
	if h := suggest.Hint(name, cands); h != "" {
		d.Hint("%s", h)
	} else {
		d.Hint("`mtc ops` lists the ops")
	}
	for _, a := range c.Args {
		if a.Name == nil {
			n.argValue(a.Value)
		}
	}
}

// argValue checks an argument of an unknown callee as far as that is possible.
func (n *names) argValue(e ast.Expr) {
	if _, ok := e.(*ast.Ident); !ok {
		n.expr(e, nil)
	}
}

func (n *names) args(b *binder, g *sig, c *ast.Call) {
	for i, a := range b.bind(g, c.Args, c.Span) {
		if a.given() && !a.flag {
			n.expr(a.arg.Value, g.params[i].decl)
		}
	}
}

// plainVariables checks that the parameters which a block assigns are given variables.
func (n *names) plainVariables(blk *ast.Block, c *ast.Call) {
	g := textSig("block", blk.Name, blk.Params)
	for i, a := range (*binder)(nil).bind(g, c.Args, c.Span) {
		if !a.given() || a.flag || !n.s.assigns(n.model, blk, g.params[i].name) {
			continue
		}
		id, ok := a.arg.Value.(*ast.Ident)
		if !ok {
			n.s.errorf(codeForm, a.arg.Value.Pos(), "block `%s` assigns `%s`, so it takes a plain variable here", blk.Name.Name, g.params[i].name).
				Also(blk.Name.Span, "declared here").
				Hint("bind it first: `x = %s`, then `%s(x)`", a.arg.Value.Pos().Text(), blk.Name.Name)
			continue
		}
		if builtins[id.Name] != "" {
			n.s.errorf(codeForm, id.Span, "block `%s` assigns `%s`, and `%s` cannot be assigned", blk.Name.Name, g.params[i].name, id.Name).
				Hint("look it up first: `x = wte: embed(%s, V, D)`", id.Name)
		}
	}
}

func blockOf(m *ast.Model, name string) *ast.Block {
	for _, b := range m.Blocks {
		if b.Name.Name == name {
			return b
		}
	}
	return nil
}

func blockNames(m *ast.Model) []string {
	var out []string
	for _, b := range m.Blocks {
		out = append(out, b.Name.Name)
	}
	return out
}

func (s *State) findBlock(name string) *ast.Block {
	if s.target == nil || s.target.model == nil {
		return nil
	}
	return blockOf(s.target.model, name)
}

func (s *State) blockNamed(name string) bool { return s.findBlock(name) != nil }
