package front

import (
	"slices"

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
	params  map[string]int  // the model's parameters by place
	limit   int             // those before it are seen
	plain   bool            // nothing built in is seen: the train block
	layer   *layer          // variables, and constants of the body
	later   map[string]bool // parameters of a block declared after the value being checked
	labels  map[string]bool // labels of this body, for ties
	repeats int             // nesting

	callsParam bool // a parameter is called as if it were a block
}

// layer holds the names that one list of statements adds. Branches get layers of their own
// instead of copies, so that the cost of a file stays in line with its length.
type layer struct {
	outer *layer
	vals  map[string]nameKind
}

func (n *names) push() { n.layer = &layer{n.layer, map[string]nameKind{}} }

// pop removes the innermost layer and returns what it held.
func (n *names) pop() map[string]nameKind {
	top := n.layer
	n.layer = top.outer
	return top.vals
}

// merge adds the names of a finished branch.
func (n *names) merge(vals map[string]nameKind) {
	for name, k := range vals {
		if n.kind(name) == 0 {
			n.layer.vals[name] = k
		}
	}
}

// newNames sees the first limit parameters of a model, and T.
func (s *State) newNames(m *ast.Model, limit int) *names {
	n := &names{s: s, model: m, params: s.paramIndex(m), limit: limit, later: map[string]bool{}}
	n.push()
	return n
}

// bodyNames sees all of the model's parameters.
func (s *State) bodyNames(m *ast.Model) *names { return s.newNames(m, len(m.Params)) }

// kind is what a name is here, 0 when nothing.
func (n *names) kind(name string) nameKind {
	for l := n.layer; l != nil; l = l.outer {
		if k := l.vals[name]; k != 0 {
			return k
		}
	}
	if i, ok := n.params[name]; ok && i < n.limit {
		return constName
	}
	if name == "T" && !n.plain {
		return constName
	}
	return 0
}

func (n *names) isLater(name string) bool {
	i, ok := n.params[name]
	return n.later[name] || ok && i >= n.limit
}

func (n *names) inScope(name string) bool { return n.kind(name) != 0 }

// scope lists the names in scope, sorted.
func (n *names) scope() []string {
	seen := map[string]bool{}
	for l := n.layer; l != nil; l = l.outer {
		for name := range l.vals {
			seen[name] = true
		}
	}
	for name, i := range n.params {
		if i < n.limit {
			seen[name] = true
		}
	}
	if !n.plain {
		seen["T"] = true
	}
	return keys(seen)
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
		n.push()
		n.body(st.Then)
		then := n.pop()
		n.push()
		n.body(st.Else)
		other := n.pop()
		n.merge(then)
		n.merge(other)
	case *ast.Repeat:
		n.repeat(st)
	case *ast.Return:
		if n.repeats > 0 {
			n.s.errorf(codeReturn, headSpan(st.Span, "return"), "`return` cannot stand in a `repeat`").Hint("return after it")
		}
		n.expr(st.Value, tensorParam)
	}
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
	case n.kind(name) == constName:
		n.s.errorf(codeTwice, st.Target.Span, "`%s` is a constant and cannot be assigned", name).
			Hint("choose another name for the variable")
	case st.Add && n.kind(name) == 0:
		d := n.s.errorf(codeUnknown, st.Target.Span, "`+=` adds to `%s`, which has no value yet", name)
		if h := suggest.Hint(name, few(n.tensors())); h != "" {
			d.Hint("%s", h)
		} else {
			d.Hint("write `%s = ...` first", name)
		}
		n.layer.vals[name] = tensorName
	case n.kind(name) == 0:
		n.layer.vals[name] = tensorName
	}
}

func (n *names) tensors() []string {
	var out []string
	for _, name := range n.scope() {
		if n.kind(name) != constName {
			out = append(out, name)
		}
	}
	return out
}

// callStmt checks a call that stands alone: a block without return, on plain variables.
func (n *names) callStmt(st *ast.CallStmt) {
	c := st.Call
	b := n.s.blockOf(n.model, c.Callee.Name)
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
	if n.s.returns(b) {
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
	n.push()
	if v := st.Var; v != nil {
		switch {
		case !n.s.notBuiltin(*v, "the variable of a `repeat`"):
		case n.kind(v.Name) != 0:
			n.s.errorf(codeTwice, v.Span, "`%s` is declared already", v.Name).Hint("choose another name after `as`")
		default:
			n.layer.vals[v.Name] = constName
		}
	}
	n.repeats++
	n.body(st.Body)
	n.repeats--
	inner := n.pop()
	if st.Var != nil {
		delete(inner, st.Var.Name)
	}
	n.merge(inner)
}

// expr checks an expression that goes to p; nil: a constant or a tensor, unknown which.
func (n *names) expr(e ast.Expr, p *op.Param) {
	if p != nil && p.Kind == namesKind {
		return // names of the model, looked up by the adapters pass
	}
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
	case *ast.List:
		n.s.errorf(codeType, e.Span, "a list cannot stand here").Hint("one value is wanted; `targets` of `lora` takes a list")
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
	if (p == nil || p.Kind == op.BlockKind) && n.s.blockOf(n.model, name) != nil {
		return
	}
	wordPlace := p == nil || p.Kind == op.Word || p.Kind == op.InitKind
	if wordPlace && n.s.isWord(name, p) {
		return
	}
	s := n.s
	if s.full() {
		return
	}
	switch {
	case n.isLater(name):
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
			d.Hint("look it up there and pass the result on: `%s(x, pe)`", n.block.Name.Name)
		}
		return
	}
	var cands []string
	what := "nothing here is called `" + name + "`"
	if p != nil && (p.Kind == op.Word || p.Kind == op.InitKind) {
		what = "`" + p.Name + "` cannot be `" + name + "`"
		w, ctors := s.words(p)
		if c := findCtor(ctors, name); c != nil {
			s.errorf(codeMissing, e.Span, "`%s` needs its arguments", name).Hint("write %s", ctorText(c))
			return
		}
		cands = append(cands, w...)
		for _, c := range ctors {
			if indexOf(cands, c.Name) < 0 {
				cands = append(cands, c.Name)
			}
		}
		if p.Default != nil && p.Default.IsNone() {
			cands = append(cands, "none")
		}
		if h := suggest.HintOr(name, cands); suggest.Nearest(name, few(append(cands, n.scope()...))) == "" {
			s.errorf(codeUnknown, e.Span, "%s", what).Hint("%s", h)
			return
		}
	}
	d := s.unknown(n.model, e.Span, what)
	if p != nil && p.Kind == textKind {
		d.Hint("a path stands in quotes: `\"%s\"`", name)
		return
	}
	if def := s.In.Ops.Lookup(name); def != nil && !def.Hidden {
		d.Hint("`%s` is an op: call it, `%s(x)`", name, name)
		return
	}
	if n.s.blockOf(n.model, name) != nil {
		d.Hint("`%s` is a block: call it, `%s(x)`", name, name)
		return
	}
	if n.labels[name] {
		d.Note("`%s` is a label: it names weights, not a value", name)
		d.Hint("bind the value to a variable: `%s = ...`", name)
		return
	}
	// What can stand here comes first: `kk` is `k` in a tensor's place, and `KV` in an int's.
	wanted, other := n.byKind(p)
	cands = append(cands, wanted...)
	if p == nil {
		w, _ := s.words(nil)
		cands = append(cands, w...)
	}
	if h := suggest.Hint(name, append([]string{"true", "false", "none"}, few(cands)...)); h != "" {
		d.Hint("%s", h)
	} else if h := suggest.Hint(name, few(other)); h != "" {
		d.Hint("%s", h)
	} else if in := n.scope(); len(in) > 1 {
		d.Hint("in scope are %s", suggest.List(in))
	}
}

// byKind parts the names in scope into those that fit a place and the others.
func (n *names) byKind(p *op.Param) (fit, other []string) {
	for _, name := range n.scope() {
		k := n.kind(name)
		if p == nil || (p.Kind == op.Tensor) == (k == tensorName) || k == eitherName {
			fit = append(fit, name)
		} else {
			other = append(other, name)
		}
	}
	return fit, other
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
	slices.Sort(all)
	d := n.s.errorf(codeUnknown, e.Span, "`tie` takes the label of a weight, and there is no `%s`", e.Name)
	d.Hint("%s", suggest.HintOr(e.Name, few(all)))
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
	return s.blockOf(s.target.model, name)
}

func (s *State) blockNamed(name string) bool { return s.findBlock(name) != nil }
