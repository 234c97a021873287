package lower

import (
	"slices"
	"strings"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/plan"
)

// Recompute writes the policy of Options.Recompute into every unit's graph.
func Recompute(m *ir.Model, o Options, diags *diag.List) {
	spec := o.Recompute
	var names []string
	if spec != "" && spec != "all" && spec != "none" {
		names = strings.Split(spec, ",")
	}
	known := map[string]bool{}
	for _, u := range m.Units {
		known[u.Name] = true
		// A routing is kept as it was: the state that made it may differ by then.
		u.Graph.NoRecompute = spec != "all" && !slices.Contains(names, u.Name) || u.Part == "route" || u.Part == "observe"
	}
	for _, n := range names {
		if !known[n] {
			diags.Errorf("MT0414", m.Span, "no block is called as `%s`, so it cannot be recomputed", n).
				Hint("names are those of the units: %s", strings.Join(unitNames(m), ", "))
		}
	}
}

func unitNames(m *ir.Model) []string {
	var out []string
	for _, u := range m.Units {
		if !slices.Contains(out, u.Name) {
			out = append(out, u.Name)
		}
	}
	return out
}

// recomputed is the function that fills the Saved region from the inputs: the forward
// launches that something saved depends on, and no others (the last projection of a layer
// and its residual are not among them).
func recomputed(b *builder, forward []*inst, saved []*value, at map[*value]pin) *fn {
	live := map[*value]bool{}
	pins := map[*value]pin{}
	for _, v := range saved {
		live[v] = true
		p := at[v]
		p.result = true
		pins[v] = p
	}
	var insts []*inst
	for _, in := range slices.Backward(forward) {
		if !slices.ContainsFunc(in.writes, func(o operand) bool { return live[o.v] }) {
			continue
		}
		for _, list := range [][]operand{in.reads, in.adds} {
			for _, r := range list {
				live[r.v] = true
			}
		}
		insts = append(insts, in)
	}
	slices.Reverse(insts)
	return b.function(plan.Recompute, insts, pins)
}
