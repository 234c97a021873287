package front

import (
	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
)

// mixture expands a call of `moe` into the ops of its router and experts (runtime/ops/moe). The
// unit of the block is cut in three: what stands before and the router's logits; the routing,
// which is kept and never made again; and the experts with what follows. So the routing of a
// whole step exists before the first expert runs, and the experts' weights are a slab of their
// own.
func (f *frame) mixture(call *op.Call, x *val, info *nodeInfo, c *ast.Call) *val {
	s := f.e.s
	switch {
	case f.unit == nil:
		s.errorf(codeBetween, c.Callee.Span, "`moe` owns weights and stands in a block").
			Hint("put it into a block that `forward` calls")
		return bad()
	case f.expert != nil:
		s.errorf(codeForm, c.Callee.Span, "an expert holds no mixture of experts itself").
			Also(f.expert.span, "the expert")
		return bad()
	case info.name.Name == "":
		s.errorf(codeNoName, c.Callee.Span, "`moe` owns weights here, so it needs a name").
			Hint("write a label before it: `moe: moe(...)`")
		return x
	}
	r, ok := f.router(call, info, c)
	if !ok {
		return x // of the right shape: what follows is checked too
	}
	info.args["logits"] = c.Callee.Span
	name := info.name.Name
	unit := f.unit
	router := &ir.Router{Path: unit.prefix + f.prefix + name, Experts: r.experts, Slots: r.slots, Mean: r.mean, Attr: r.attr, Span: c.Span}
	s.Model.Routers = append(s.Model.Routers, router)

	in := *f
	in.prefix, in.chain = f.prefix+name+".", c.Span
	logits := in.made(moeLogits, []*val{x}, map[string]op.Value{"experts": r.attr["experts"], "init": call.Attr["init"]}, info, "router", "logits", c.Span)

	sel := []*val{logits}
	if r.attr["pool"].Int == poolStep {
		in.cut("observe", router)
		sel = append(sel, in.made(moeObserve, []*val{logits}, r.attr, info, "", "seen", c.Span))
	}
	in.cut("route", router)
	routing := in.made(moeSelect, sel, r.attr, info, "", "routing", c.Span)
	in.cut("experts", router)
	gates := in.made(moeGate, []*val{logits, routing}, r.attr, info, "", "gates", c.Span)
	rows := in.made(moeGather, []*val{x, routing}, r.attr, info, "", "rows", c.Span)

	at := c.Span
	if a, given := info.args["expert"]; given {
		at = a
	}
	y := in.inline(call.Attr["expert"], "expert", rows, at, &expert{routing: routing, attr: r.attr, path: in.prefix + "expert", span: at})
	if y.bad {
		return x
	}
	if y.c != nil {
		s.errorf(codeNotConst, at, "an expert returns a tensor, not %s", describe(*y.c))
		return bad()
	}
	out := in.made(moeCombine, []*val{y, gates, routing}, r.attr, info, "", name, c.Span)
	if sh := call.Attr["shared"]; !sh.IsNone() {
		at := info.args["shared"]
		z := in.inline(sh, "shared", x, at, nil)
		if z.bad {
			return z
		}
		out = in.binary("+", c.Callee.Span, z, out, at, c.Callee.Span)
	}
	return out
}

// The ops that a mixture consists of.
const (
	moeLogits  = "moe_logits"
	moeObserve = "moe_observe"
	moeSelect  = "moe_select"
	moeGate    = "moe_gate"
	moeGather  = "moe_gather"
	moeCombine = "moe_combine"
	grouped    = "grouped"

	groupedNorm = "grouped_norm"
)

// made adds one op of a mixture, with those of the constants that it takes.
func (f *frame) made(name string, in []*val, attr map[string]op.Value, from *nodeInfo, label, result string, span source.Span) *val {
	d := f.e.s.In.Ops.Lookup(name)
	call := &op.Call{Def: d, Attr: map[string]op.Value{}}
	info := &nodeInfo{args: map[string]source.Span{}, inits: from.inits}
	if label != "" {
		info.name = ast.Ident{Name: label, Span: from.name.Span}
	}
	for _, p := range d.Params {
		if p.Kind == op.Tensor {
			if len(call.Inputs) < len(in) {
				call.Inputs = append(call.Inputs, p.Name)
				info.args[p.Name] = span
			}
			continue
		}
		call.Attr[p.Name] = attr[p.Name]
	}
	for _, v := range in {
		if v.bad {
			return bad()
		}
	}
	v := f.node(call, in, info, span)
	if v.g != nil {
		v.g.Name = result
		if name == moeSelect {
			v.g.Full = tensorDim(attr)
		}
	}
	return v
}

// cut closes the open part of the frame's unit and opens another one.
func (f *frame) cut(part string, r *ir.Router) {
	e, last := f.e, f.unit.last()
	first := f.unit.unit
	kind := ir.GlueUnit
	if part == "experts" {
		kind = ir.LayerUnit
	}
	b := &build{
		unit: &ir.Unit{
			Kind: kind, Name: first.Name, Index: first.Index, Part: part, Cut: last.unit.Cut, Router: r, Span: first.Span,
			Graph: &ir.Graph{Name: first.Name + "." + part, Span: first.Graph.Span},
		},
		inputs: map[*ir.Value]*ir.Value{},
		prefix: f.unit.prefix,
	}
	if part == "experts" {
		b.unit.Cut++
	}
	last.next = b
	e.s.units = append(e.s.units, b)
}

// inline runs a block that is a value on a tensor.
func (f *frame) inline(v op.Value, name string, x *val, at source.Span, ex *expert) *val {
	e, s := f.e, f.e.s
	b := s.blockOf(e.model, v.Str)
	if b == nil || x.bad {
		return bad()
	}
	if f.depth >= maxInline {
		s.exceed(at, "blocks call each other more than %d deep", maxInline)
		return bad()
	}
	if !s.returns(b) {
		s.errorf(codeForm, at, "`%s` is a block that returns a value, and `%s` returns none", name, b.Name.Name).
			Also(b.Name.Span, "declared here").
			Hint("end it with `return down: linear(...)`")
		return bad()
	}
	in := &frame{
		e: e, unit: f.unit, block: b, consts: newScope(s.consts), vars: map[string]*val{}, given: map[string]*val{},
		prefix: f.prefix + name + ".", chain: at, depth: f.depth + 1, expert: ex,
	}
	in.consts.vars = in.vars
	for i, p := range b.Params {
		switch arg := v.Args[i]; {
		case i == 0:
			in.vars[p.Name.Name], in.given[p.Name.Name] = x, x
		case arg.Kind != op.VUnbound:
			in.consts.set(p.Name.Name, constant{v: arg})
		case p.Default != nil:
			d, ok := s.eval(p.Default, in.consts, nil)
			in.consts.set(p.Name.Name, constant{d, !ok})
			if !ok {
				return bad()
			}
		default:
			s.errorf(codeMissing, at, "`%s` needs `%s` of block `%s` bound", name, p.Name.Name, b.Name.Name).
				Also(b.Name.Span, "declared here").
				Hint("write `%s(%s = ...)`", b.Name.Name, p.Name.Name)
			return bad()
		}
	}
	errors := s.Diags.Len()
	f.follow(in, at, func(i int) bool { return v.Args[i].Kind != op.VUnbound })
	s.trail = in.trail
	in.body(b.Body)
	s.trail = f.trail
	if in.ret == nil {
		if s.Diags.Len() == errors && !s.spent {
			s.errorf(codeReturn, at, "the branches taken in block `%s` return nothing", b.Name.Name).
				Also(b.Name.Span, "declared here")
		}
		return bad()
	}
	return in.ret
}
