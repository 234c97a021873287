package lower

import (
	"slices"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/tensor"
)

// flow is how gradients pass between the units of a model.
type flow struct {
	learns map[*ir.Value]bool         // model values that depend on a parameter, so that they have a gradient
	din    map[*ir.Unit][]ir.GradMode // for each input
	dout   map[*ir.Unit][]bool        // for each output
}

// gradientFlow decides which unit makes which gradient of a value between units. Backward
// visits units from the last to the first: the first contribution sets, later ones add.
func gradientFlow(m *ir.Model) *flow {
	f := &flow{learns: map[*ir.Value]bool{}, din: map[*ir.Unit][]ir.GradMode{}, dout: map[*ir.Unit][]bool{}}
	for _, u := range m.Units {
		in := make([]bool, len(u.Inputs))
		for i, v := range u.Inputs {
			in[i] = f.learns[v]
		}
		needs := gradientNeeds(u.Graph, in)
		for i, v := range u.Outputs {
			f.learns[v] = needs[u.Graph.Outputs[i]]
		}
	}
	has := map[*ir.Value]bool{}
	for i := len(m.Units) - 1; i >= 0; i-- {
		u := m.Units[i]
		for _, v := range u.Outputs {
			f.dout[u] = append(f.dout[u], f.learns[v])
		}
		for _, v := range u.Inputs {
			mode := ir.GradNone
			if f.learns[v] {
				mode = ir.GradSet
				if has[v] {
					mode = ir.GradAdd
				}
				has[v] = true
			}
			f.din[u] = append(f.din[u], mode)
		}
	}
	return f
}

// gradientNeeds tells which values of a graph have a gradient that something needs: those
// of floating point that depend on a weight that learns or on an input with a gradient.
func gradientNeeds(g *ir.Graph, in []bool) map[*ir.Value]bool {
	needs := map[*ir.Value]bool{}
	for i, v := range g.Inputs {
		needs[v] = in[i] && v.Type.DType != tensor.I32
	}
	for _, n := range g.Nodes {
		need := slices.ContainsFunc(n.Weights, func(w *ir.Weight) bool { return !w.Frozen })
		for _, v := range n.Inputs {
			need = need || needs[v]
		}
		needs[n.Out] = need && n.Out.Type.DType != tensor.I32
	}
	return needs
}
