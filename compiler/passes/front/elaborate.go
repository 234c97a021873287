package front

import (
	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// What a model may be at most, so that a slip such as `repeat 1000000000` is an error at
// once and not a full memory.
const (
	maxRepeat = 10_000 // of one repeat, and of all together
	maxNodes  = 50_000 // ops of all units
	maxInline = 200    // blocks called in blocks
)

// maxElems bounds the elements of a tensor and of a model: sizes in bytes, times the 16 of
// the optimizer's state, stay within 63 bits.
const maxElems = 1 << 58

// val is what an expression gives: a constant, or a tensor in the unit that makes it or, for
// what passes between units, in the model.
type val struct {
	bad  bool      // an error was reported; stay silent
	c    *op.Value // a constant
	unit *build    // the unit that made it
	g    *ir.Value // in that unit's graph
	m    *ir.Value // in the model; set when another unit needs it
	span source.Span
}

func bad() *val                { return &val{bad: true} }
func constVal(v op.Value) *val { return &val{c: &v} }
func (v *val) tensor() bool    { return !v.bad && v.c == nil }

// build is a unit under construction.
type build struct {
	unit    *ir.Unit
	inputs  map[*ir.Value]*ir.Value // model value -> graph input
	segment bool                    // ops of forward itself, not of a block
	prefix  string                  // of weight paths: "layer[3]." or ""
	next    *build                  // the part of the block that follows a cut, nil without one
}

// last is the part of a block that takes further ops.
func (u *build) last() *build {
	for u.next != nil {
		u = u.next
	}
	return u
}

// nodeInfo is what the passes after elaborate need of a node.
type nodeInfo struct {
	unit    *build
	prefix  string      // path of the inlined blocks: "attn."
	name    ast.Ident   // label or variable; no Name when there is none
	chain   source.Span // the innermost inlined call, for weights named twice
	tie     *ast.Ident
	args    map[string]source.Span // where each argument stands
	op      string                 // the operator of the text, "" for a call
	inits   source.Span            // of the `init` argument
	expert  string                 // path of the experts that the op belongs to: "moe.expert"; "" outside
	slots   int64                  // rows a token of their mixture
	trail   *trail                 // how its block was reached
	written string                 // what the text calls the op, where another takes its place
	bad     bool
}

// elab runs the forward function of a model.
type elab struct {
	s      *State
	model  *ast.Model
	cur    *build // the open segment of forward, nil when a block call closed it
	counts map[string]int64
	nodes  int64
	rounds int64
	tokens *val
	pos    *val
}

// frame is one body being run: forward or a block.
type frame struct {
	e      *elab
	unit   *build // nil in forward
	block  *ast.Block
	consts *scope
	vars   map[string]*val
	given  map[string]*val // what the caller passed to the parameters
	prefix string
	chain  source.Span
	depth  int
	expert *expert // in the block of a mixture's experts
	trail  *trail  // how the block was reached; nil in forward
	ret    *val
	retAt  source.Span
}

// Elaborate runs forward with the constants: blocks in blocks are inlined, conditions taken,
// repeats unrolled. Every block call in forward becomes a unit with a graph of its own; the ops
// between become units too. Values have no types yet.
func Elaborate(s *State) {
	m := s.target.model
	if m == nil || len(m.Forwards) == 0 {
		return
	}
	e := &elab{s: s, model: m, counts: map[string]int64{}}
	ids := tensor.Type{DType: tensor.I32, Shape: tensor.Shape{{Name: "B"}, {Name: "T"}}}
	e.tokens = &val{m: &ir.Value{Name: "tokens", Type: ids}}
	e.pos = &val{m: &ir.Value{Name: "position", Type: ids}}
	s.Model.Values = append(s.Model.Values, e.tokens.m, e.pos.m)
	fw := m.Forwards[0]
	f := &frame{e: e, consts: newScope(s.consts), vars: map[string]*val{"tokens": e.tokens, "position": e.pos}}
	f.consts.vars = f.vars
	f.body(fw.Body)
	if e.s.spent {
		return
	}
	if f.ret == nil {
		if !s.Diags.HasErrors() {
			s.errorf(codeReturn, headSpan(fw.Span, "forward"), "the branches taken return no logits").
				Hint("end `forward` with `return head: linear(x, V)`")
		}
		return
	}
	s.logit, s.logitAt = f.ret, f.retAt
	s.closeUnits()
}

// body runs statements; it stops after a return.
func (f *frame) body(list []ast.Stmt) {
	for _, st := range list {
		if f.ret != nil || f.e.s.spent {
			return
		}
		f.stmt(st)
	}
}

func (f *frame) stmt(st ast.Stmt) {
	switch st := st.(type) {
	case *ast.Assign:
		f.assign(st)
	case *ast.CallStmt:
		if b := f.e.s.blockOf(f.e.model, st.Call.Callee.Name); b != nil {
			f.callBlock(b, st.Call, true)
		}
	case *ast.If:
		c, ok := f.e.s.evalCond(st.Cond, f.consts)
		switch {
		case !ok:
			// Either branch may assign: what they would set stays silent.
			for _, body := range [][]ast.Stmt{st.Then, st.Else} {
				eachAssign(body, func(a *ast.Assign) { f.vars[a.Target.Name] = bad() })
			}
			if hasReturn(st.Then) || hasReturn(st.Else) {
				f.ret = bad()
			}
		case c:
			f.body(st.Then)
		default:
			f.body(st.Else)
		}
	case *ast.Repeat:
		f.repeat(st)
	case *ast.Return:
		f.ret, f.retAt = f.expr(st.Value), st.Value.Pos()
		if f.ret.c != nil {
			f.e.s.errorf(codeNotConst, st.Value.Pos(), "a tensor is returned, not %s", describe(*f.ret.c))
			f.ret = bad()
		}
	}
}

func (f *frame) repeat(st *ast.Repeat) {
	e, s := f.e, f.e.s
	v, ok := s.eval(st.Count, f.consts, nil)
	if !ok {
		return
	}
	at := st.Count.Pos()
	switch {
	case v.Kind != op.VInt:
		s.errorf(codeType, at, "`repeat` takes an int, not %s", describe(v))
		return
	case v.Int < 1:
		s.errorf(codeRange, at, "`repeat` runs at least once, not %d times", v.Int).
			Hint("leave the `repeat` out, or put it into an `if`")
		return
	case v.Int > maxRepeat-e.rounds:
		s.exceed(at, "`repeat` of %d: a model has at most %d rounds in all", v.Int, maxRepeat)
		return
	}
	e.rounds += v.Int
	s.loops = append(s.loops, at)
	defer func() { s.loops = s.loops[:len(s.loops)-1] }()
	outer := f.consts
	for i := int64(0); i < v.Int && !e.s.spent; i++ {
		if st.Var != nil {
			f.consts = newScope(outer)
			f.consts.vals[st.Var.Name] = constant{v: op.Value{Kind: op.VInt, Int: i}}
		}
		errors := s.Diags.Len()
		f.body(st.Body)
		if s.Diags.Len() > errors && s.Diags.HasErrors() {
			break // further rounds would say the same
		}
	}
	f.consts = outer
}

func (f *frame) assign(st *ast.Assign) {
	s, name := f.e.s, st.Target.Name
	var old *val
	if st.Add {
		old = f.variable(&st.Target)
	}
	implicit := ast.Ident{}
	if c, ok := st.Value.(*ast.Call); ok && !st.Add && c.Label == nil {
		implicit = st.Target
	}
	v := f.named(st.Value, implicit)
	if v.c != nil {
		s.errorf(codeNotConst, st.Value.Pos(), "a variable holds a tensor, not %s", describe(*v.c)).
			Hint("a constant is a parameter: of the model, or of the block with a default")
		v = bad()
	}
	if st.Add {
		span := st.Span
		if st.OpSpan.Valid() {
			span = st.OpSpan
		}
		v = f.binary("+=", span, old, v, st.Target.Span, st.Value.Pos())
	}
	if v.g != nil && v.g.Name == "" {
		v.g.Name = name
	}
	if c, isConst := f.consts.lookup(name); isConst && f.vars[name] == nil && !c.bad {
		s.errorf(codeNotConst, st.Target.Span, "`%s` is the constant %s here and cannot be assigned", name, c.v)
		return
	}
	f.vars[name] = v
}

// variable looks up a variable that must have a value on the branches taken.
func (f *frame) variable(id *ast.Ident) *val {
	if v := f.vars[id.Name]; v != nil {
		return v
	}
	s := f.e.s
	if c, ok := f.consts.lookup(id.Name); ok {
		if c.bad {
			return bad()
		}
		return &val{c: &c.v, span: id.Span}
	}
	s.errorf(codeUnassigned, id.Span, "`%s` has no value on the branches taken", id.Name).
		Hint("assign it in both branches of the `if`, or before it")
	f.vars[id.Name] = bad()
	return bad()
}

// expr evaluates an expression that may be a tensor or a constant.
func (f *frame) expr(e ast.Expr) *val { return f.named(e, ast.Ident{}) }

// named is expr with the name that a call gets when it has no label.
func (f *frame) named(e ast.Expr, implicit ast.Ident) *val {
	s := f.e.s
	if !s.step(e.Pos()) {
		return bad()
	}
	switch e := e.(type) {
	case *ast.Paren:
		return f.named(e.X, ast.Ident{})
	case *ast.Ident:
		if f.vars[e.Name] != nil {
			return f.variable(e)
		}
		if _, isConst := f.consts.lookup(e.Name); !isConst && e.Name != "T" && !s.isWord(e.Name, nil) && s.findBlock(e.Name) == nil {
			return f.variable(e)
		}
	case *ast.Cond:
		c, ok := s.evalCond(e.If, f.consts)
		if !ok {
			return bad()
		}
		if c {
			return f.named(e.Then, ast.Ident{})
		}
		return f.named(e.Else, ast.Ident{})
	case *ast.Unary:
		if e.Op == "-" {
			x := f.named(e.X, ast.Ident{})
			if x.bad {
				return x
			}
			if x.tensor() {
				return f.scale("-", e.Span, x, op.Value{Kind: op.VFloat, Float: -1}, e.X.Pos())
			}
			return f.wrap(s.unary(e, *x.c))
		}
	case *ast.Binary:
		switch e.Op {
		case "+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=":
			return f.binaryExpr(e)
		}
	case *ast.Call:
		if b := s.blockOf(f.e.model, e.Callee.Name); b != nil && !s.bound[e] {
			return f.callBlock(b, e, false)
		}
		if d := s.In.Ops.Lookup(e.Callee.Name); d != nil && !d.Hidden && s.makesTensor(e, f.isTensor) {
			return f.callOp(d, e, implicit)
		}
	}
	return f.wrap(s.eval(e, f.consts, nil))
}

func (f *frame) isTensor(name string) bool { return f.vars[name] != nil && f.vars[name].c == nil }

func (f *frame) wrap(v op.Value, ok bool) *val {
	if !ok {
		return bad()
	}
	return constVal(v)
}

// binaryExpr evaluates an operator on tensors or constants.
func (f *frame) binaryExpr(e *ast.Binary) *val {
	x := f.named(e.X, ast.Ident{})
	y := f.named(e.Y, ast.Ident{})
	if x.bad || y.bad {
		return bad()
	}
	if x.c != nil && y.c != nil {
		return f.wrap(f.e.s.binary(e, *x.c, *y.c))
	}
	at := e.Span
	if e.OpSpan.Valid() {
		at = e.OpSpan
	}
	return f.binary(e.Op, at, x, y, e.X.Pos(), e.Y.Pos())
}
