package lower

import (
	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/diag"
)

// Prune drops ops whose result nothing needs and brings each graph to the form that the
// later passes count on: a value of the model is bound to one input, a parameter to one
// weight. A parameter of a dropped op stays; its gradient is zero. A unit that the logits
// do not depend on is an error: it could never learn.
func Prune(m *ir.Model, diags *diag.List) {
	wanted := map[*ir.Value]bool{}
	for i := len(m.Units) - 1; i >= 0; i-- {
		u := m.Units[i]
		if u.Kind != ir.HeadUnit {
			keepOutputs(u, wanted)
		}
		if len(u.Outputs) == 0 {
			diags.Errorf("MT0330", u.Span, "`%s` changes nothing: the logits do not depend on it", u.Path()).
				Mark("its result is never used").
				Hint("use its result in what `forward` returns, or remove the call")
			continue
		}
		mergeInputs(u)
		mergeWeights(u)
		dropDead(u.Graph, diags)
		dropInputs(u)
		for _, v := range u.Inputs {
			wanted[v] = true
		}
	}
}

// keepOutputs keeps the outputs that later units read.
func keepOutputs(u *ir.Unit, wanted map[*ir.Value]bool) {
	var out, bound []*ir.Value
	for i, v := range u.Outputs {
		if wanted[v] {
			out, bound = append(out, u.Graph.Outputs[i]), append(bound, v)
		}
	}
	u.Graph.Outputs, u.Outputs = out, bound
}

// dropInputs drops the inputs that no live op reads.
func dropInputs(u *ir.Unit) {
	used := inputsUsed(u.Graph)
	var in, bound []*ir.Value
	for i, v := range u.Graph.Inputs {
		if used[v] {
			in, bound = append(in, v), append(bound, u.Inputs[i])
		}
	}
	u.Graph.Inputs, u.Inputs = in, bound
}

// mergeInputs makes graph inputs that are bound to the same value one input.
func mergeInputs(u *ir.Unit) {
	first := map[*ir.Value]*ir.Value{}
	become := map[*ir.Value]*ir.Value{}
	var in, bound []*ir.Value
	for i, v := range u.Inputs {
		g := u.Graph.Inputs[i]
		if f, ok := first[v]; ok {
			become[g] = f
			continue
		}
		first[v] = g
		in, bound = append(in, g), append(bound, v)
	}
	u.Graph.Inputs, u.Inputs = in, bound
	replace(u.Graph, become)
}

// replace rewrites uses of values.
func replace(g *ir.Graph, become map[*ir.Value]*ir.Value) {
	if len(become) == 0 {
		return
	}
	lists := [][]*ir.Value{g.Outputs}
	for _, n := range g.Nodes {
		lists = append(lists, n.Inputs)
	}
	for _, list := range lists {
		for i, v := range list {
			if to, ok := become[v]; ok {
				list[i] = to
			}
		}
	}
}

// mergeWeights makes weight slots that are bound to the same parameter one slot.
func mergeWeights(u *ir.Unit) {
	first := map[*ir.Param]*ir.Weight{}
	become := map[*ir.Weight]*ir.Weight{}
	var slots []*ir.Weight
	var params []*ir.Param
	for i, p := range u.Params {
		w := u.Graph.Weights[i]
		if f, ok := first[p]; ok {
			become[w] = f
			continue
		}
		first[p] = w
		slots, params = append(slots, w), append(params, p)
	}
	if len(become) == 0 {
		return
	}
	u.Graph.Weights, u.Params = slots, params
	for _, n := range u.Graph.Nodes {
		for i, w := range n.Weights {
			if to, ok := become[w]; ok {
				n.Weights[i] = to
			}
		}
	}
}

// dropDead removes nodes that no output depends on.
func dropDead(g *ir.Graph, diags *diag.List) {
	live := map[*ir.Value]bool{}
	for _, v := range g.Outputs {
		live[v] = true
	}
	keep := make([]bool, len(g.Nodes))
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := g.Nodes[i]
		if !live[n.Out] {
			if len(n.Weights) > 0 {
				diags.Warnf("MT0331", n.Span, "the result of `%s` is never used, so its weights never learn", n.Call.Def.Name)
			}
			continue
		}
		keep[i] = true
		for _, v := range n.Inputs {
			live[v] = true
		}
	}
	nodes := g.Nodes[:0]
	for i, n := range g.Nodes {
		if keep[i] {
			nodes = append(nodes, n)
		}
	}
	g.Nodes = nodes
}

// inputsUsed tells which values the live nodes and the outputs of a pruned graph read.
func inputsUsed(g *ir.Graph) map[*ir.Value]bool {
	used := map[*ir.Value]bool{}
	for _, v := range g.Outputs {
		used[v] = true
	}
	for _, n := range g.Nodes {
		for _, v := range n.Inputs {
			used[v] = true
		}
	}
	return used
}
