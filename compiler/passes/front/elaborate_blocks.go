package front

import (
	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
)

// callBlock runs a block: as a unit of its own in forward, inlined in a block.
func (f *frame) callBlock(b *ast.Block, c *ast.Call, stmt bool) *val {
	e, s := f.e, f.e.s
	if f.depth >= maxInline {
		s.exceed(c.Callee.Span, "blocks call each other more than %d deep", maxInline)
		return bad()
	}
	// An inlined block that makes no node still costs time: it counts as one.
	if e.nodes++; e.nodes > maxNodes {
		s.exceed(c.Span, "the model has more than %d ops", maxNodes)
		return bad()
	}
	name := b.Name
	if c.Label != nil {
		name = *c.Label
	}
	in := &frame{e: e, block: b, consts: newScope(s.consts), vars: map[string]*val{}, given: map[string]*val{}, depth: f.depth + 1, chain: c.Span, expert: f.expert}
	args, ok := f.blockArgs(b, c, in)
	in.consts.vars = in.vars
	if !ok {
		f.poison(b, args)
		return bad()
	}
	if f.unit == nil {
		in.unit = e.newUnit(name, c)
		in.prefix = ""
	} else {
		in.unit = f.unit
		in.prefix = f.prefix + name.Name + "."
	}
	f.follow(in, c.Span, func(i int) bool { return args[i].given() || args[i].flag })
	errors := s.Diags.Len()
	s.trail = in.trail
	in.body(b.Body)
	s.trail = f.trail
	if f.unit == nil && len(in.unit.unit.Graph.Nodes) == 0 && s.Diags.Len() == errors && !e.s.spent {
		s.errorf(codeForm, c.Callee.Span, "block `%s` computes nothing here", b.Name.Name).
			Also(b.Name.Span, "declared here").
			Hint("a block called in `forward` is a unit of its own and needs an op at least")
		f.poison(b, args)
		return bad()
	}
	f.writeBack(b, args, in)
	if stmt {
		return nil
	}
	if in.ret == nil {
		if s.Diags.Len() == errors && !e.s.spent {
			s.errorf(codeReturn, c.Callee.Span, "the branches taken in block `%s` return nothing", b.Name.Name).
				Also(b.Name.Span, "declared here")
		}
		return bad()
	}
	return in.ret
}

// blockArgs evaluates the arguments of a block call into the frame of the block.
func (f *frame) blockArgs(b *ast.Block, c *ast.Call, in *frame) ([]bound, bool) {
	s := f.e.s
	ok := true
	args := (*binder)(nil).bind(textSig("block", b.Name, b.Params), c.Args, c.Span)
	for i, a := range args {
		p := b.Params[i]
		name := p.Name.Name
		switch {
		case a.flag:
			in.consts.set(name, constant{v: *op.BoolValue(true)})
			continue
		case !a.given() && p.Default == nil:
			ok = false // reported by names
			continue
		case !a.given():
			v, vok := s.eval(p.Default, in.consts, nil)
			in.consts.set(name, constant{v, !vok})
			ok = ok && vok
			continue
		}
		v := f.named(a.arg.Value, ast.Ident{})
		switch {
		case v.bad:
			ok = false
			in.vars[name] = v
		case v.c != nil:
			in.consts.set(name, constant{v: *v.c})
		case p.Default != nil:
			s.errorf(codeNotConst, a.arg.Value.Pos(), "`%s` of block `%s` is a constant, because it has a default; this is a tensor", name, b.Name.Name).
				Also(p.Span, "declared here")
			ok = false
		default:
			in.vars[name], in.given[name] = v, v
		}
	}
	return args, ok
}

// writeBack gives the caller's variables the values that the block assigned to its parameters.
func (f *frame) writeBack(b *ast.Block, args []bound, in *frame) {
	if f.e.s.returns(b) {
		return
	}
	for i, a := range args {
		if !a.given() || a.flag {
			continue
		}
		id, ok := a.arg.Value.(*ast.Ident)
		name := b.Params[i].Name.Name
		if v := in.vars[name]; ok && v != nil && v != in.given[name] && f.vars[id.Name] != nil {
			f.vars[id.Name] = v
		}
	}
}

// poison marks what a block with bad arguments would have assigned.
func (f *frame) poison(b *ast.Block, args []bound) {
	for i, a := range args {
		if !a.given() || a.flag || b.Params[i].Default != nil {
			continue
		}
		if id, ok := a.arg.Value.(*ast.Ident); ok && f.vars[id.Name] != nil && f.e.s.assigns(f.e.model, b, b.Params[i].Name.Name) {
			f.vars[id.Name] = bad()
		}
	}
}

// newUnit starts the unit of a block call in forward: name[k], k counting the calls of that name.
func (e *elab) newUnit(name ast.Ident, c *ast.Call) *build {
	e.cur = nil
	k := e.counts[name.Name]
	e.counts[name.Name]++
	if k == 0 && (name.Name == "embed" || name.Name == "head") {
		e.s.errorf(codeTwice, name.Span, "`%s` names the ops %s, so a unit cannot have this name", name.Name,
			map[string]string{"embed": "before the first block", "head": "after the last block"}[name.Name]).
			Hint("give the call another label: `layer: %s(...)`", c.Callee.Name)
	}
	u := &build{
		unit:   &ir.Unit{Kind: ir.LayerUnit, Name: name.Name, Index: int(k), Span: c.Span, Graph: &ir.Graph{Name: name.Name, Span: e.blockSpan(c)}},
		inputs: map[*ir.Value]*ir.Value{},
	}
	u.prefix = u.unit.Path() + "."
	e.s.units = append(e.s.units, u)
	return u
}

// blockSpan is where the block of a call is declared: what its template comes from.
func (e *elab) blockSpan(c *ast.Call) source.Span {
	if b := e.s.blockOf(e.model, c.Callee.Name); b != nil {
		return b.Name.Span
	}
	return c.Span
}
