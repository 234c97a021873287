package lower

import (
	"math"
	"slices"
	"strings"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Adapters lays low-rank adapters beside the linears that the train block names (Hu et al.,
// arXiv 2106.09685) and freezes all else: y = x W^T becomes y = x W^T + (s x A^T) B^T with
// s = alpha / rank. The factor stands between the two, where the rows are narrow. A starts
// uniform within 1/sqrt(in), which is what He's rule with a = sqrt(5) comes to, and B at zero.
func Adapters(m *ir.Model) {
	if m.LoRA == nil {
		return
	}
	for _, p := range m.Params {
		p.Frozen = true
	}
	for _, u := range m.Units {
		for i, w := range u.Graph.Weights {
			w.Frozen = true
			u.Params[i].Frozen = true // that of all experts together is none of the model's own
		}
	}
	for _, t := range m.LoRA.Targets {
		if at := slices.Index(t.Unit.Graph.Nodes, t.Node); at >= 0 { // else nothing needs its result
			adapt(m, t, at)
		}
	}
}

// adapt inserts the adapter of one linear, node number at of its graph.
func adapt(m *ir.Model, t *ir.LoRATarget, at int) {
	g, base := t.Unit.Graph, t.Node
	x, name := base.Inputs[0], resultName(base)
	in, out := x.Type.Shape.Last(), base.Out.Type.Shape.Last()
	rank := tensor.Dim{Name: "rank", N: m.LoRA.Rank}

	path := strings.TrimSuffix(t.Weight.Path, ".weight")
	slot := strings.TrimSuffix(base.Weights[0].Path, ".weight")
	weight := func(part string, shape tensor.Shape, init plan.Init) (*ir.Param, *ir.Weight) {
		p := &ir.Param{Path: path + part, Shape: shape, Role: op.Matrix, Init: init, Span: base.Span, Uses: 1}
		w := &ir.Weight{Path: slot + part, Shape: shape, Role: op.Matrix, Span: base.Span}
		m.Params = append(m.Params, p)
		t.Unit.Params, g.Weights = append(t.Unit.Params, p), append(g.Weights, w)
		return p, w
	}
	var a, b *ir.Weight
	t.A, a = weight(".lora_a.weight", tensor.Shape{rank, in}, plan.Init{Kind: plan.InitUniform, Scale: 1 / math.Sqrt(float64(in.N))})
	t.B, b = weight(".lora_b.weight", tensor.Shape{out, rank}, plan.Init{Kind: plan.InitZero})

	node := func(name string, c *op.Call, inputs []*ir.Value, weights ...*ir.Weight) *ir.Node {
		n := &ir.Node{Call: c, Inputs: inputs, Weights: weights, Span: base.Span}
		n.Out = &ir.Value{Name: name, Type: c.Out, Span: base.Span, Node: n}
		return n
	}
	low := node(name+".low", linearCall(x.Type, rank), []*ir.Value{x}, a)
	nodes := []*ir.Node{low}
	if s := m.LoRA.Alpha / float64(m.LoRA.Rank); s != 1 {
		c := newCall("scale", []string{"x"}, []tensor.Type{low.Out.Type}, map[string]op.Value{"by": *op.FloatValue(s)})
		nodes = append(nodes, node(name+".scaled", c, []*ir.Value{low.Out}))
	}
	narrow := nodes[len(nodes)-1].Out
	wide := node(name+".delta", linearCall(narrow.Type, out), []*ir.Value{narrow}, b)
	sum := node(name, newCall("add", []string{"a", "b"}, []tensor.Type{base.Out.Type, wide.Out.Type}, nil), nil)
	replace(g, map[*ir.Value]*ir.Value{base.Out: sum.Out})
	sum.Inputs = []*ir.Value{base.Out, wide.Out}
	base.Out.Name = name + ".base"
	g.Nodes = slices.Insert(g.Nodes, at+1, append(nodes, wide, sum)...)
}

func linearCall(x tensor.Type, out tensor.Dim) *op.Call {
	width := op.IntValue(out.N)
	width.Dim = out.Name
	return newCall("linear", []string{"x"}, []tensor.Type{x}, map[string]op.Value{
		"out": *width, "bias": *op.BoolValue(false), "tie": *op.None(), "init": *op.None(),
	})
}
