package lower

import (
	"fmt"
	"maps"
	"testing"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/all"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/tensor"
)

// modelBuilder makes small models by hand, for passes to work on.
type modelBuilder struct {
	t      *testing.T
	m      *ir.Model
	tokens *ir.Value
	params map[string]*ir.Param
}

func newModel(t *testing.T, batch, seq, vocab int64) *modelBuilder {
	ids := tensor.Type{DType: tensor.I32, Shape: tensor.Shape{{Name: "B", N: batch}, {Name: "T", N: seq}}}
	tokens := &ir.Value{Name: "tokens", Type: ids}
	m := &ir.Model{Name: "test", Batch: batch, Seq: seq, Vocab: vocab, Values: []*ir.Value{tokens}, Train: &ir.Train{}}
	return &modelBuilder{t: t, m: m, tokens: tokens, params: map[string]*ir.Param{}}
}

// unitBuilder makes one unit.
type unitBuilder struct {
	mb *modelBuilder
	u  *ir.Unit
	g  *ir.Graph
}

func (mb *modelBuilder) unit(kind ir.UnitKind, name string, index int) *unitBuilder {
	g := &ir.Graph{Name: name}
	u := &ir.Unit{Kind: kind, Name: name, Index: index, Graph: g}
	mb.m.Units = append(mb.m.Units, u)
	return &unitBuilder{mb, u, g}
}

// in binds a model value to a new graph input.
func (ub *unitBuilder) in(v *ir.Value) *ir.Value {
	g := &ir.Value{Name: v.Name, Type: v.Type}
	ub.g.Inputs = append(ub.g.Inputs, g)
	ub.u.Inputs = append(ub.u.Inputs, v)
	return g
}

// out makes a graph value an output and returns the model value bound to it.
func (ub *unitBuilder) out(v *ir.Value) *ir.Value {
	m := &ir.Value{Name: v.Name, Type: v.Type}
	ub.g.Outputs = append(ub.g.Outputs, v)
	ub.u.Outputs = append(ub.u.Outputs, m)
	if ub.u.Kind != ir.HeadUnit {
		ub.mb.m.Values = append(ub.mb.m.Values, m)
	}
	return m
}

type attrs map[string]op.Value

// op applies an op; label names its weights, params with a path given in tie are shared.
func (ub *unitBuilder) op(name, label string, a attrs, inputs ...*ir.Value) *ir.Value {
	return ub.tied(name, label, "", a, inputs...)
}

func (ub *unitBuilder) tied(name, label, tie string, a attrs, inputs ...*ir.Value) *ir.Value {
	ub.mb.t.Helper()
	def := all.Lookup(name)
	if def == nil {
		ub.mb.t.Fatalf("no op %s", name)
	}
	c := &op.Call{Def: def, Attr: map[string]op.Value{}}
	i := 0
	for _, p := range def.Params {
		if p.Kind == op.Tensor {
			if i < len(inputs) {
				c.Inputs = append(c.Inputs, p.Name)
				c.In = append(c.In, inputs[i].Type)
				i++
			}
			continue
		}
		if p.Default != nil {
			c.Attr[p.Name] = *p.Default
		}
	}
	maps.Copy(c.Attr, a)
	if err := def.Infer(c); err != nil {
		ub.mb.t.Fatalf("%s %s: %v", name, label, err)
	}
	base := label
	if base == "" {
		base = name
	}
	n := &ir.Node{Call: c, Inputs: inputs, Label: label}
	n.Out = &ir.Value{Name: base, Type: c.Out, Node: n}
	for _, w := range c.Weights {
		path := ub.u.Path() + "." + label + "." + w.Name
		if ub.u.Kind != ir.LayerUnit {
			path = label + "." + w.Name
		}
		if tie != "" && w.Name == "weight" {
			path = tie
		}
		p := ub.mb.params[path]
		if p == nil {
			init := plan.Init{Kind: plan.InitNormal, Scale: 0.2}
			if w.Role == op.Norm {
				init = plan.Init{Kind: plan.InitOne}
			}
			p = &ir.Param{Path: path, Shape: w.Shape, Role: w.Role, Init: init}
			ub.mb.params[path] = p
			ub.mb.m.Params = append(ub.mb.m.Params, p)
		}
		p.Uses++
		slot := &ir.Weight{Path: label + "." + w.Name, Shape: w.Shape, Role: w.Role}
		n.Weights = append(n.Weights, slot)
		ub.g.Weights = append(ub.g.Weights, slot)
		ub.u.Params = append(ub.u.Params, p)
	}
	ub.g.Nodes = append(ub.g.Nodes, n)
	return n.Out
}

func (ub *unitBuilder) embed(label string, rows, dim int64, ids *ir.Value) *ir.Value {
	return ub.op("embed", label, attrs{"rows": *op.IntValue(rows), "dim": *op.IntValue(dim)}, ids)
}

func (ub *unitBuilder) linear(label string, out int64, x *ir.Value) *ir.Value {
	return ub.op("linear", label, attrs{"out": *op.IntValue(out)}, x)
}

func (ub *unitBuilder) add(a, b *ir.Value) *ir.Value { return ub.op("add", "", nil, a, b) }
func (ub *unitBuilder) mul(a, b *ir.Value) *ir.Value { return ub.op("mul", "", nil, a, b) }

// llama is a small decoder; window alternates by layer when it is not 0.
func llama(t *testing.T, batch, seq, vocab, d, layers, heads, kv, f int64, tied bool, window int64) *ir.Model {
	mb := newModel(t, batch, seq, vocab)
	e := mb.unit(ir.EmbedUnit, "embed", -1)
	x := e.out(e.embed("wte", vocab, d, e.in(mb.tokens)))
	x.Name = "x"
	for i := range layers {
		u := mb.unit(ir.LayerUnit, "layer", int(i))
		in := u.in(x)
		h := u.op("rmsnorm", "attn_norm", nil, in)
		hd := d / heads
		q := u.linear("q", d, h)
		k := u.linear("k", kv*hd, h)
		v := u.linear("v", kv*hd, h)
		rope := attrs{"hd": *op.IntValue(hd)}
		w := op.None()
		if window > 0 && i%2 == 1 {
			w = op.IntValue(window)
		}
		a := u.op("attention", "a", attrs{"heads": *op.IntValue(heads), "kv": *op.IntValue(kv), "causal": *op.BoolValue(true), "window": *w},
			u.op("rope", "", rope, q), u.op("rope", "", rope, k), v)
		mid := u.add(in, u.linear("o", d, a))
		mid.Name = "x"
		h = u.op("rmsnorm", "mlp_norm", nil, mid)
		gated := u.mul(u.op("silu", "", nil, u.linear("gate", f, h)), u.linear("up", f, h))
		y := u.add(mid, u.linear("down", d, gated))
		y.Name = "x"
		x = u.out(y)
	}
	h := mb.unit(ir.HeadUnit, "head", -1)
	n := h.op("rmsnorm", "norm", nil, h.in(x))
	if tied {
		h.out(h.tied("linear", "head", "wte.weight", attrs{"out": *op.IntValue(vocab)}, n))
	} else {
		h.out(h.linear("head", vocab, n))
	}
	return mb.m
}

// spans gives every node a span in a file of one line for each node, so that dumps show them.
func spans(m *ir.Model) *ir.Model {
	var text []byte
	type at struct{ n *ir.Node }
	var nodes []at
	for _, u := range m.Units {
		for _, n := range u.Graph.Nodes {
			text = fmt.Appendf(text, "%s\n", n.Call.Def.Name)
			nodes = append(nodes, at{n})
		}
	}
	f := source.New("test.mt", text)
	off := 0
	for _, a := range nodes {
		end := off + len(a.n.Call.Def.Name)
		a.n.Span = source.Span{File: f, Start: off, End: end}
		off = end + 1
	}
	return m
}

func mustLower(t *testing.T, m *ir.Model, o Options) *ir.Program {
	t.Helper()
	var diags diag.List
	p := Lower(m, o, &diags)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	return p
}
