package lower

import (
	"slices"
	"strconv"
	"strings"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/plan"
)

// Recompute writes the policy of Options.Recompute into every unit's graph.
func Recompute(m *ir.Model, o Options, diags *diag.List) {
	again, known := recomputes(o.Recompute), map[string]bool{}
	layers := 0
	for _, u := range m.Units {
		if u.Kind == ir.LayerUnit && u.Part == "" {
			layers++
		}
		known[u.Name], known[whole(u)] = true, true
		// A routing is kept as it was: the state that made it may differ by then.
		u.Graph.NoRecompute = !again(u, layers-1) || u.Part == "route" || u.Part == "observe"
	}
	n, isNumber := firstLayers(o.Recompute)
	if isNumber && n > layers {
		diags.Errorf("MT0414", source.Span{}, "`--recompute %d` is of more layers than the %d there are", n, layers).
			Hint("`--recompute all` is of every layer")
	}
	if isNumber || o.Recompute == "" || o.Recompute == "all" || o.Recompute == "none" {
		return
	}
	for _, word := range ir.SplitNames(o.Recompute) {
		names := ir.ExpandName(word)
		if i := slices.IndexFunc(names, func(name string) bool { return !known[name] }); i >= 0 {
			diags.Errorf("MT0414", source.Span{}, "`--recompute`: no block is called as `%s`, so it cannot be recomputed", names[i]).
				Hint("names are those of the units: %s; of some: `%s[0..%d]`; of the first layers: a number", strings.Join(unitNames(m), ", "), layerName(m), max(0, layers-1))
		}
	}
}

// recomputes is which units a spec means, by the number of the layer that they lie in or behind; -1 before any.
func recomputes(spec string) func(u *ir.Unit, layer int) bool {
	if n, ok := firstLayers(spec); ok {
		return func(u *ir.Unit, layer int) bool { return layer < n && n > 0 }
	}
	names := ir.ExpandNames(spec)
	return func(u *ir.Unit, _ int) bool {
		return spec == "all" || slices.Contains(names, u.Name) || slices.Contains(names, whole(u))
	}
}

// firstLayers reads a spec that is a number of first layers.
func firstLayers(spec string) (n int, ok bool) {
	n, err := strconv.Atoi(spec)
	return n, err == nil && n >= 0
}

// whole is the path of the block that a unit is a part of: "layer[3]".
func whole(u *ir.Unit) string {
	x := *u
	x.Part = ""
	return x.Path()
}

func layerName(m *ir.Model) string {
	for _, u := range m.Units {
		if u.Kind == ir.LayerUnit {
			return u.Name
		}
	}
	return "layer"
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
		if !slices.ContainsFunc(in.writes, func(o operand) bool { return o.v != nil && live[o.v] }) {
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
