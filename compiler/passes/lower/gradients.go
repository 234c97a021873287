package lower

import (
	"slices"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/tensor"
)

// memAlign is the alignment of values within a region, in bytes: a cache line, and the
// widest vector.
const memAlign = 64

func align(n int64) int64 { return (n + memAlign - 1) / memAlign * memAlign }

// Gradients differentiates every template except the head, whose backward is part of its
// loss function. Forward and backward are built over the same values; what backward reads of
// forward's is the Saved set, which forward keeps in the Saved region (or Recompute makes
// again there). Inputs are kept by the schedule and are not saved.
func Gradients(l *Lowering) {
	for _, t := range l.tmpls {
		if t.kind == ir.HeadUnit {
			continue
		}
		b := newBuilder(l, t, size(t.Graph, l.Program.Rows, l.Program.Model.Seq), nil)
		b.emit = b.sizes
		b.forward(t.Graph.Nodes)
		forward := b.insts
		b.insts = nil
		if slices.Contains(t.DOut, true) {
			b.seedOutputs()
			b.backward(t.Graph.Nodes)
			b.finishInputs()
			b.zeroUnwritten()
		}
		forward, b.insts = b.epilogues(forward, b.insts)
		forward, b.insts = b.rotations(forward, b.insts)
		forward = b.residuals(forward, b.insts)
		l.split(b, forward, b.squares(b.insts))
		l.advance(b)
	}
}

// split makes the functions of a template from its forward and backward launches.
func (l *Lowering) split(b *builder, forward, backward []*inst) {
	t := b.t
	made := map[*value]bool{}
	for _, in := range forward {
		for _, w := range in.writes {
			made[w.v] = true
		}
	}
	saved := map[*value]pin{} // where each saved value lies
	var order []*value
	for _, in := range backward {
		for _, r := range in.reads {
			if _, ok := saved[r.v]; !ok && r.v != nil && made[r.v] {
				saved[r.v] = pin{region: ir.RSaved, off: t.SavedBytes}
				t.SavedBytes += align(r.v.bytes)
				order = append(order, r.v)
			}
		}
	}
	t.Recompute = len(saved) > 0 && !t.Graph.NoRecompute

	keep := map[*value]pin{}
	if !t.Recompute {
		for _, v := range order {
			p := saved[v]
			p.result = true
			keep[v] = p
		}
	}
	b.insts = slices.Clip(forward)
	l.placeOutputs(b, keep)
	t.funcs = append(t.funcs, b.function(plan.Forward, b.insts, keep))

	if t.Recompute && l.opts.Again {
		again := map[*value]pin{}
		for _, v := range order {
			p := saved[v]
			p.result = true
			again[v] = p
		}
		b.insts = slices.Clip(forward)
		l.placeOutputs(b, again)
		t.funcs = append(t.funcs, b.function(plan.Again, b.insts, again))
	}
	if t.Recompute {
		t.funcs = append(t.funcs, recomputed(b, forward, order, saved))
	}
	if len(backward) > 0 {
		read := map[*value]pin{}
		for _, v := range order {
			p := saved[v]
			p.filled, p.locked = true, true
			read[v] = p
		}
		t.funcs = append(t.funcs, b.function(plan.Backward, backward, read))
	}
}

// placeOutputs sees to it that each output of the graph ends in its Out region: the value
// itself where it is free to lie there, else a copy (an input, a saved value, a second
// output of one value).
func (l *Lowering) placeOutputs(b *builder, pins map[*value]pin) {
	for i, out := range b.t.Graph.Outputs {
		v := b.values[out]
		p := pin{region: ir.ROut, index: i, result: true}
		_, fixed := b.pins[v]
		_, taken := pins[v]
		if fixed || taken {
			v = b.copyTo(v, func(t tensor.Type) *value { return b.value(out.Name, t) }, out.Span, p)
		}
		pins[v] = p
	}
}

// seedOutputs makes the gradients that later units left for this one's outputs.
func (b *builder) seedOutputs() {
	for i, out := range b.t.Graph.Outputs {
		if !b.t.DOut[i] {
			continue
		}
		v := b.values[out]
		d := b.gradient(v, v.typ)
		b.pins[d] = pin{region: ir.RDOut, index: i, filled: true, locked: true}
		b.pending[v] = append(b.pending[v], d)
	}
	for i, in := range b.t.Graph.Inputs {
		if b.t.DIn[i] == ir.GradAdd {
			v := b.values[in]
			d := b.gradient(v, v.typ)
			b.pins[d] = pin{region: ir.RDIn, index: i, filled: true}
			b.pending[v] = append(b.pending[v], d)
		}
	}
}

// backward appends the backward launches of nodes, last node first.
func (b *builder) backward(nodes []*ir.Node) {
	for i := len(nodes) - 1; i >= 0; i-- {
		n := nodes[i]
		if !b.needs[n.Out] {
			continue
		}
		dy := b.total(b.values[n.Out], n.Span)
		if dy == nil {
			continue // no output depends on it
		}
		b.differentiate(n, dy)
	}
}

// differentiate appends the launches of one node that make gradients something needs.
func (b *builder) differentiate(n *ir.Node, dy *value) {
	c := b.emit.calls[n]
	if c.Def.PassThrough {
		for _, v := range n.Inputs {
			if b.needs[v] {
				x := b.values[v]
				b.pending[x] = append(b.pending[x], dy)
			}
		}
		return
	}
	b.checkGradients(n)
	temps := map[string]*value{} // what one backward launch leaves for a later one
	for i := range c.Def.Backward {
		launch := &c.Def.Backward[i]
		if b.wanted(n, launch, c.Def.Backward[i+1:]) {
			b.gradientLaunch(n, b.apart(n, launch), dy, temps)
		}
	}
}

// wanted tells whether a backward launch makes something that is needed: the gradient of a
// weight, of an input that has one, or what a later wanted launch reads.
func (b *builder) wanted(n *ir.Node, launch *op.Launch, later []op.Launch) bool {
	for _, name := range launch.Writes {
		base, isGrad := gradientOf(name)
		if !isGrad {
			for i := range later {
				if slices.Contains(later[i].Reads, name) && b.wanted(n, &later[i], later[i+1:]) {
					return true
				}
			}
			continue
		}
		if w := b.weightOf(n, base); w != nil && !w.Frozen {
			return true
		}
		if v := b.inputOf(n, base); v != nil && b.needs[v] {
			return true
		}
	}
	return false
}

// gradientLaunch appends one backward launch. Each gradient it writes is a new value that
// takes one of the contributions so far as its addend; a launch never adds to what it
// writes itself.
func (b *builder) gradientLaunch(n *ir.Node, launch *op.Launch, dy *value, temps map[string]*value) {
	c := b.emit.calls[n]
	in := &inst{call: c, launch: launch, span: n.Span, inLoop: b.inLoop, guard: -1}
	for _, name := range launch.Reads {
		switch {
		case name == op.Grad("y"):
			in.reads = append(in.reads, operand{name: name, v: dy})
		case temps[name] != nil:
			in.reads = append(in.reads, operand{name: name, v: temps[name]})
		default:
			in.reads = append(in.reads, operand{name: name, v: b.operand(n, name)})
		}
	}
	type contribution struct{ x, d *value }
	var made []contribution
	for _, name := range launch.Writes {
		base, isGrad := gradientOf(name)
		takesAddend := slices.Contains(launch.Adds, name)
		switch {
		case !isGrad:
			if x := b.operand(n, name); x != nil {
				temps[name] = b.value(n.Out.Name+"."+name, x.typ)
			}
			in.writes = append(in.writes, operand{name: name, v: temps[name]})
		case b.weightOf(n, base) != nil:
			w := b.weightOf(n, base)
			if w.Frozen {
				in.writes = append(in.writes, operand{name: name})
				continue
			}
			dw := b.dw[w]
			in.writes = append(in.writes, operand{name: name, v: dw})
			in.adds = append(in.adds, operand{name: name, v: dw, maybe: !b.dwSeen[w]})
			b.dwSeen[w] = true
		case b.inputOf(n, base) != nil:
			v := b.inputOf(n, base)
			x := b.values[v]
			d := b.gradient(x, b.sizes.types[v])
			in.writes = append(in.writes, operand{name: name, v: d})
			if !b.needs[v] {
				continue // written because the launch writes it, read by nobody
			}
			if takesAddend {
				in.adds = append(in.adds, operand{name: name, v: b.takePending(x)})
			}
			made = append(made, contribution{x, d})
		default:
			in.writes = append(in.writes, operand{name: name}) // of an absent operand
		}
	}
	b.insts = append(b.insts, in)
	for _, m := range made {
		b.pending[m.x] = append(b.pending[m.x], m.d)
	}
}

// takePending removes the latest contribution to the gradient of x; nil when there is none.
func (b *builder) takePending(x *value) *value {
	list := b.pending[x]
	if len(list) == 0 {
		return nil
	}
	d := list[len(list)-1]
	b.pending[x] = list[:len(list)-1]
	return d
}

// total adds up the contributions to the gradient of x, oldest first; nil when there are none.
func (b *builder) total(x *value, span source.Span) *value {
	list := b.pending[x]
	if len(list) == 0 {
		return nil
	}
	sum := list[0]
	for _, d := range list[1:] {
		s := b.gradient(x, sum.typ)
		b.insert(newCall("add", []string{"a", "b"}, []tensor.Type{sum.typ, sum.typ}, nil), span, []*value{sum, d}, []*value{s})
		sum = s
	}
	b.pending[x] = []*value{sum}
	return sum
}

// finishInputs sees to it that the gradient of each input ends in its DIn region: the value
// itself where it is free to lie there, else a copy (the gradient of an output passed on, or
// one value that is the gradient of two inputs).
func (b *builder) finishInputs() {
	for i, in := range b.t.Graph.Inputs {
		if b.t.DIn[i] == ir.GradNone {
			continue
		}
		x := b.values[in]
		p := pin{region: ir.RDIn, index: i, result: true}
		d := b.total(x, in.Span)
		if d == nil {
			panic("no gradient reaches input " + in.Name + " of " + b.t.Name)
		}
		if old, fixed := b.pins[d]; fixed {
			if old.region == ir.RDIn && old.index == i {
				continue // nothing was added to what it holds
			}
			b.copyTo(d, func(t tensor.Type) *value { return b.gradient(x, t) }, in.Span, p)
			continue
		}
		b.pins[d] = p
	}
}

// checkGradients reports an op that declares no gradient for an input that needs one.
func (b *builder) checkGradients(n *ir.Node) {
	def := n.Call.Def
	for i, v := range n.Inputs {
		if !b.needs[v] {
			continue
		}
		name := op.Grad(n.Call.Inputs[i])
		if !slices.ContainsFunc(def.Backward, func(l op.Launch) bool { return slices.Contains(l.Writes, name) }) {
			b.l.diags.Errorf("MT0333", n.Span, "`%s` has no gradient for `%s`, so what stands before it cannot learn", def.Name, n.Call.Inputs[i])
		}
	}
	for i, w := range n.Call.Weights {
		name := op.Grad(w.Name)
		if !slices.ContainsFunc(def.Backward, func(l op.Launch) bool { return slices.Contains(l.Adds, name) }) {
			panic(def.Name + " declares no gradient that adds for its weight " + n.Weights[i].Path)
		}
	}
}

// weightOf is the slot of a weight of a node by its operand name, or nil.
func (b *builder) weightOf(n *ir.Node, name string) *ir.Weight {
	for i, w := range n.Call.Weights {
		if w.Name == name {
			return n.Weights[i]
		}
	}
	return nil
}

// inputOf is a tensor input of a node by its operand name, or nil.
func (b *builder) inputOf(n *ir.Node, name string) *ir.Value {
	if i := slices.Index(n.Call.Inputs, name); i >= 0 {
		return n.Inputs[i]
	}
	return nil
}

func gradientOf(operand string) (base string, ok bool) {
	if len(operand) > 2 && operand[:2] == "d." {
		return operand[2:], true
	}
	return operand, false
}
