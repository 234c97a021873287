package front

import (
	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
)

// callOp makes the node of an op call.
func (f *frame) callOp(d *op.Def, c *ast.Call, implicit ast.Ident) *val {
	s := f.e.s
	g := opSig(d)
	call := &op.Call{Def: d, Attr: map[string]op.Value{}}
	info := &nodeInfo{args: map[string]source.Span{}, name: implicit}
	if c.Label != nil {
		info.name = *c.Label
	}
	var in []*val
	ok := true
	for i, b := range (*binder)(nil).bind(g, c.Args, c.Span) {
		p := &d.Params[i]
		if !b.given() {
			if p.Kind != op.Tensor && p.Default != nil {
				call.Attr[p.Name] = *p.Default
			}
			continue
		}
		info.args[p.Name] = b.arg.Value.Pos()
		switch {
		case b.flag:
			call.Attr[p.Name] = *op.BoolValue(true)
		case p.Kind == op.Tensor:
			v := f.named(b.arg.Value, ast.Ident{})
			switch {
			case v.bad:
				ok = false
			case v.c != nil && v.c.IsNone() && p.Default != nil:
				continue // an optional tensor left out
			case v.c != nil:
				s.errorf(codeNotConst, b.arg.Value.Pos(), "`%s` of `%s` is a tensor, not %s", p.Name, d.Name, describe(*v.c))
				ok = false
			default:
				call.Inputs = append(call.Inputs, p.Name)
				in = append(in, v)
			}
		case p.Kind == op.TieKind:
			info.tie, ok = f.tie(b.arg.Value, ok)
		default:
			if name, isTensor := f.tensorIn(b.arg.Value); isTensor {
				s.errorf(codeNotConst, b.arg.Value.Pos(), "`%s` of `%s` is a constant, and `%s` is a tensor", p.Name, d.Name, name)
				ok = false
				continue
			}
			v, vok := s.eval(b.arg.Value, f.consts, p)
			if vok {
				v, vok = s.fit(v, p, d.Name, b.arg.Value)
			}
			ok = ok && vok
			call.Attr[p.Name] = v
			if p.Kind == op.InitKind {
				info.inits = b.arg.Value.Pos()
			}
		}
	}
	if !ok {
		return bad()
	}
	if d.Expands {
		return f.mixture(call, in[0], info, c)
	}
	f.causal(call, info, c)
	return f.node(call, in, info, c.Span)
}

// causal reports an op that sees later positions: every model's loss is on the next token,
// which such an op would only have to copy.
func (f *frame) causal(call *op.Call, info *nodeInfo, c *ast.Call) {
	flag := call.Def.Causal
	if flag == "" || call.Bool(flag) {
		return
	}
	s := f.e.s
	if at, ok := info.args[flag]; ok {
		s.errorf(codeCausal, at, "`%s` is false here, so `%s` sees the tokens that the loss asks it for", flag, call.Def.Name).
			Note("the loss is on the next token; a model that sees it learns to copy it").
			Hint("write `%s`", flag)
		return
	}
	d := s.errorf(codeCausal, c.Callee.Span, "`%s` without `%s` sees the tokens that the loss asks it for", call.Def.Name, flag).
		Note("the loss is on the next token; a model that sees it learns to copy it")
	if call.Has("window") {
		d.Note("a `window` alone reaches to both sides")
	}
	d.Hint("add `%s`: `%s(..., %s)`", flag, call.Def.Name, flag)
}

// tie resolves `tie = if tied then wte else none` to a label, or nil for none.
func (f *frame) tie(e ast.Expr, ok bool) (*ast.Ident, bool) {
	switch e := e.(type) {
	case *ast.Paren:
		return f.tie(e.X, ok)
	case *ast.None:
		return nil, ok
	case *ast.Ident:
		return e, ok
	case *ast.Cond:
		c, cok := f.e.s.evalCond(e.If, f.consts)
		if !cok {
			return nil, false
		}
		if c {
			return f.tie(e.Then, ok)
		}
		return f.tie(e.Else, ok)
	}
	f.e.s.errorf(codeTie, e.Pos(), "`tie` takes the label of a weight, or `none`").Hint("write `tie = wte`")
	return nil, false
}

// tensorIn finds a tensor in an expression that must be constant.
func (f *frame) tensorIn(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.Paren:
		return f.tensorIn(e.X)
	case *ast.Unary:
		return f.tensorIn(e.X)
	case *ast.Binary:
		if name, ok := f.tensorIn(e.X); ok {
			return name, true
		}
		return f.tensorIn(e.Y)
	case *ast.Ident:
		v := f.vars[e.Name]
		return e.Name, v != nil && v.tensor()
	}
	return "", false
}

// binary applies + - * to tensors, or * to a tensor and a constant. at is the operator.
func (f *frame) binary(o string, at source.Span, x, y *val, xs, ys source.Span) *val {
	if x.bad || y.bad {
		return bad()
	}
	s := f.e.s
	if x.c != nil || y.c != nil {
		c, t, cs, ts := x, y, xs, ys
		if y.c != nil {
			c, t, cs, ts = y, x, ys, xs
		}
		if t.c != nil {
			s.errorf(codeNotConst, xs, "`%s` is not a tensor", xs.Text())
			return bad()
		}
		if o == "*" && isNumber(*c.c) {
			return f.scale("*", xs.To(ys), t, *c.c, cs)
		}
		d := s.errorf(codeConstOp, at, "`%s` does not take a tensor and %s", o, describe(*c.c)).
			Also(ts, "a tensor").Also(cs, "a constant")
		switch {
		case o == "/" && c == y && isNumber(*c.c):
			d.Hint("multiply by the inverse: `%s * (1.0 / %s)`", ts.Text(), cs.Text())
		case o == "/" || o == "%" || isCompare(o):
			d.Hint("tensors have `+`, `-` and `*`")
		default:
			d.Hint("a constant scales a tensor with `*`; it is not added to one")
		}
		return bad()
	}
	name := map[string]string{"+": "add", "+=": "add", "-": "sub", "*": "mul"}[o]
	if name == "" {
		s.errorf(codeConstOp, at, "`%s` does not take tensors", o).
			Also(xs, "a tensor").Also(ys, "a tensor").
			Hint("tensors have `+`, `-` and `*`; conditions and sizes are constants")
		return bad()
	}
	d := s.In.Ops.Lookup(name)
	p := d.Params
	call := &op.Call{Def: d, Inputs: []string{p[0].Name, p[1].Name}, Attr: map[string]op.Value{}}
	info := &nodeInfo{args: map[string]source.Span{p[0].Name: xs, p[1].Name: ys}, op: o}
	span := xs.To(ys)
	return f.node(call, []*val{x, y}, info, span)
}

func isCompare(o string) bool {
	switch o {
	case "==", "!=", "<", "<=", ">", ">=":
		return true
	}
	return false
}

// scale multiplies a tensor by a constant.
func (f *frame) scale(o string, span source.Span, x *val, by op.Value, at source.Span) *val {
	if !f.e.s.single(by.Num(), "by", "scale", at) {
		return bad()
	}
	d := f.e.s.In.Ops.Lookup("scale")
	call := &op.Call{Def: d, Attr: map[string]op.Value{}}
	info := &nodeInfo{args: map[string]source.Span{}, op: o}
	for _, p := range d.Params {
		if p.Kind == op.Tensor {
			call.Inputs = append(call.Inputs, p.Name)
			info.args[p.Name] = x.span
		} else {
			call.Attr[p.Name] = op.Value{Kind: op.VFloat, Float: by.Num()}
			info.args[p.Name] = at
		}
	}
	return f.node(call, []*val{x}, info, span)
}

// node adds an op to the unit that the frame runs in; in forward, to the open segment.
func (f *frame) node(call *op.Call, in []*val, info *nodeInfo, span source.Span) *val {
	e := f.e
	if e.nodes++; e.nodes > maxNodes {
		e.s.exceed(span, "the model has more than %d ops", maxNodes)
		return bad()
	}
	u := f.unit
	if u == nil {
		u = e.segment(span)
	} else {
		u = u.last()
	}
	if f.expert != nil {
		if !f.expert.adapt(f, call, &in, info, span) {
			return bad()
		}
		info.expert, info.slots = f.expert.path, f.expert.attr["slots"].Int
	}
	info.unit, info.prefix, info.chain = u, f.prefix, f.chain
	n := &ir.Node{Call: call, Span: span, Label: info.name.Name, Out: &ir.Value{Span: span}}
	n.Out.Node = n
	for _, v := range in {
		n.Inputs = append(n.Inputs, u.use(e.s, v))
	}
	u.unit.Graph.Nodes = append(u.unit.Graph.Nodes, n)
	info.trail = f.trail
	e.s.nodes[n] = info
	return &val{unit: u, g: n.Out, span: span}
}

// segment returns the unit for ops of forward itself; a block call closes it.
func (e *elab) segment(at source.Span) *build {
	if e.cur == nil {
		e.cur = &build{
			unit:    &ir.Unit{Index: -1, Span: at, Graph: &ir.Graph{Span: at}},
			inputs:  map[*ir.Value]*ir.Value{},
			segment: true,
		}
		e.s.units = append(e.s.units, e.cur)
	}
	return e.cur
}

// use returns the graph value through which unit u reads v, and makes it an input of u, and
// an output of the unit that made it, when that is another one.
func (u *build) use(s *State, v *val) *ir.Value {
	if v.unit == u {
		return v.g
	}
	if v.m == nil {
		v.m = v.unit.export(s, v.g)
	}
	if in := u.inputs[v.m]; in != nil {
		return in
	}
	in := &ir.Value{Name: v.m.Name, Type: v.m.Type, Span: v.m.Span, Full: v.m.Full}
	u.inputs[v.m] = in
	u.unit.Graph.Inputs = append(u.unit.Graph.Inputs, in)
	u.unit.Inputs = append(u.unit.Inputs, v.m)
	return in
}

// export makes a graph value an output of its unit and returns its model value.
func (u *build) export(s *State, g *ir.Value) *ir.Value {
	for i, o := range u.unit.Graph.Outputs {
		if o == g {
			return u.unit.Outputs[i]
		}
	}
	m := &ir.Value{Name: g.Name, Span: g.Span, Full: g.Full}
	s.Model.Values = append(s.Model.Values, m)
	u.unit.Graph.Outputs = append(u.unit.Graph.Outputs, g)
	u.unit.Outputs = append(u.unit.Outputs, m)
	return m
}
