package front

import (
	"slices"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag/suggest"
	"github.com/megatrain/mtc/runtime/op"
)

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
		n.s.bound[c] = true
		blk := n.s.blockOf(n.model, name)
		if blk == nil {
			n.unknownCallee(c, p, blockNames(n.model))
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
	if constant && p.Kind != op.Word && p.Kind != op.InitKind {
		if _, all := s.words(nil); findCtor(all, name) != nil {
			s.errorf(codeType, c.Span, "`%s` is %s, and `%s(...)` is none", p.Name, article(p.Kind), name)
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
	if blk := n.s.blockOf(n.model, name); blk != nil {
		if !stmt && n.boundBlock(b, blk, c, p) {
			return
		}
		if !stmt && !n.s.returns(blk) {
			s.errorf(codeForm, c.Callee.Span, "block `%s` returns no value", name).
				Also(blk.Name.Span, "declared here").
				Hint("call it as a statement, `%s(x)`, or end it with `return`", name)
		}
		n.args(b, textSig("block", blk.Name, blk.Params), c)
		if stmt && !n.s.returns(blk) {
			n.plainVariables(blk, c)
		}
		return
	}
	if d := s.In.Ops.Lookup(name); d != nil && !d.Hidden {
		n.args(b, opSig(d), c)
		return
	}
	if n.block != nil && indexOf(blockParams(n.block), name) >= 0 {
		n.callsParam = true
		s.errorf(codeNotYet, c.Callee.Span, "`%s` is a parameter, and a block that is called by the name of a parameter is not available in this version", name).
			Hint("call the block by its name; an `if` on a constant chooses between several")
		return
	}
	if s.full() {
		return
	}
	cands := append(s.In.Ops.Names(), blockNames(n.model)...)
	if constant {
		cands = nil
	}
	if p == nil || constant {
		_, ctors := s.words(p)
		for _, ct := range ctors {
			cands = append(cands, ct.Name)
		}
	}
	if p != nil && constant && len(p.Ctors) > 0 { // a number is none of its values
		cands = append(cands, p.Words...)
		if p.Default != nil && p.Default.IsNone() {
			cands = append(cands, "none")
		}
		slices.Sort(cands)
		cands = slices.Compact(cands)
	} else if p == nil || p.Kind != op.Word && p.Kind != op.InitKind { // a number is no word either
		for _, fn := range functions {
			cands = append(cands, fn.Name)
		}
	}
	n.unknownCallee(c, p, cands)
}

// boundBlock takes a block with some arguments bound, `mlp(width = 2 * D)`, as a value: the
// call names arguments, and the tensor that the block works on is not among them.
func (n *names) boundBlock(b *binder, blk *ast.Block, c *ast.Call, p *op.Param) bool {
	if len(blk.Params) == 0 || blk.Params[0].Default != nil || p != nil && p.Kind == op.Tensor {
		return false
	}
	for _, a := range c.Args {
		if a.Name == nil || a.Name.Name == blk.Params[0].Name.Name {
			return false
		}
	}
	if p != nil {
		n.s.errorf(codeType, c.Span, "`%s` is %s, and `%s(...)` is a block with arguments bound", p.Name, article(p.Kind), blk.Name.Name).
			Also(blk.Name.Span, "declared here")
	}
	b.partial = true
	n.args(b, textSig("block", blk.Name, blk.Params), c)
	n.s.bound[c] = true
	return true
}

func blockParams(b *ast.Block) []string {
	var out []string
	for _, p := range b.Params {
		out = append(out, p.Name.Name)
	}
	return out
}

// anyTensor reports whether some argument is certainly a tensor.
func (n *names) anyTensor(c *ast.Call) bool {
	for _, a := range c.Args {
		if n.s.makesTensor(a.Value, func(name string) bool { return n.kind(name) > constName }) {
			return true
		}
	}
	return false
}

func (n *names) unknownCallee(c *ast.Call, p *op.Param, cands []string) {
	s, name := n.s, c.Callee.Name
	what := "there is no op or block `" + name + "`"
	switch {
	case p != nil && (p.Kind == op.Word || p.Kind == op.InitKind):
		what = "`" + p.Name + "` cannot be `" + name + "(...)`"
	case p != nil && p.Kind == op.BlockKind:
		what = "there is no block `" + name + "`"
	case p != nil && p.Kind != op.Tensor:
		what = "there is no function `" + name + "`"
	case p == nil:
		what = "there is no op, block or function `" + name + "`"
	}
	d := s.unknown(n.model, c.Callee.Span, what)
	if s.full() {
		return
	}
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
	if h := foreignOps[name]; h != "" && (p == nil || p.Kind == op.Tensor) {
		d.Hint("%s", h)
	} else if h := suggest.Hint(name, few(cands)); h != "" {
		d.Hint("%s", h)
	} else if p == nil || p.Kind == op.Tensor {
		d.Hint("`mtc ops` lists the ops")
	} else if len(cands) > 0 {
		d.Hint("one of %s", suggest.List(cands))
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
	assigned := map[string]string{}
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
		if first := assigned[id.Name]; first != "" {
			n.s.errorf(codeForm, id.Span, "block `%s` assigns both `%s` and `%s`, and `%s` cannot take both values", blk.Name.Name, first, g.params[i].name, id.Name).
				Also(blk.Name.Span, "declared here").
				Hint("pass two variables")
		}
		assigned[id.Name] = g.params[i].name
		if builtins[id.Name] != "" {
			n.s.errorf(codeForm, id.Span, "block `%s` assigns `%s`, and `%s` cannot be assigned", blk.Name.Name, g.params[i].name, id.Name).
				Hint("look it up first: `x = wte: embed(%s, V, D)`", id.Name)
		}
	}
}
