package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/megatrain/mtc/runtime/plan"
)

// WriteRouters says of a predicted step how many tokens hide the transfer of a mixture's experts
// behind their computation: weights cross for forward and for backward, gradients once.
func (t *Step) WriteRouters(w io.Writer) {
	m := t.Machine
	if m == nil || len(t.File.Routers) == 0 || !(m.Link.H2D.Value > 0 && m.Link.D2H.Value > 0) || t.Plan.Target != "cuda" {
		return
	}
	done := map[int64]bool{}
	for _, r := range t.File.Routers {
		if done[r.Params] {
			continue
		}
		done[r.Params] = true
		unit, _, _ := strings.Cut(r.Name, ".")
		unit += ".experts"
		compute := 0.0
		var elems int64
		list := t.Plan.Lists[t.Line.List]
		for i := list.Start; i < list.End; i++ {
			x := &t.Plan.Tasks[i]
			if x.Kind == plan.Compute && x.Unit >= 0 && t.Plan.Units[x.Unit].Name == unit {
				compute += t.End[i-list.Start] - t.Start[i-list.Start]
			}
		}
		for i := range t.File.Slabs {
			if t.File.Slabs[i].Name == unit {
				elems = t.File.Slabs[i].Elems
			}
		}
		tokens := float64(t.Plan.Batch * t.Plan.Seq)
		if compute <= 0 || elems == 0 || tokens == 0 {
			continue
		}
		weights := 2 * float64(elems*t.Plan.WeightSize()) / m.Link.H2D.Value
		grads := 4 * float64(elems) / m.Link.D2H.Value
		need := max(weights, grads) / (compute / tokens)
		fmt.Fprintf(w, "%s: %.0f tokens a step hide the transfer of its experts, this step has %.0f\n", unit, need, tokens)
	}
}
