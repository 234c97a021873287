package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/megatrain/mtc/runtime/plan"
)

// WriteRouters says of a predicted step how many tokens hide the transfer of a mixture's experts
// behind their computation: weights cross for forward and for backward, gradients once. On a CPU, where a copy
// is one of memory, that is so of a stream alone, by the time that its copies are predicted to take.
func (t *Step) WriteRouters(w io.Writer) {
	m := t.Machine
	if m == nil || len(t.File.Routers) == 0 || t.Plan.Target == "cuda" && !(m.Link.H2D.Value > 0 && m.Link.D2H.Value > 0) {
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
		compute, in, out := 0.0, 0.0, 0.0
		var elems int64
		list := t.Plan.Lists[t.Line.List]
		for i := list.Start; i < list.End; i++ {
			x, took := &t.Plan.Tasks[i], t.End[i-list.Start]-t.Start[i-list.Start]
			switch {
			case x.Kind == plan.Compute && x.Unit >= 0 && t.Plan.Units[x.Unit].Name == unit:
				compute += took
			case x.Kind == plan.Prefetch && x.Slab >= 0 && t.Plan.Slabs[x.Slab].Name == unit:
				in += took
			case x.Kind == plan.Offload && x.Slab >= 0 && t.Plan.Slabs[x.Slab].Name == unit:
				out += took
			}
		}
		for i := range t.File.Slabs {
			if t.File.Slabs[i].Name == unit {
				elems = t.File.Slabs[i].Elems
			}
		}
		tokens := float64(t.Plan.Batch * t.Plan.Seq)
		if compute <= 0 || elems == 0 || tokens == 0 || t.Plan.Target != "cuda" && in == 0 {
			continue
		}
		if t.Plan.Target == "cuda" {
			in = 2 * float64(elems*t.Plan.WeightSize()) / m.Link.H2D.Value
			out = 4 * float64(elems) / m.Link.D2H.Value
		}
		need := max(in, out) / (compute / tokens)
		for _, line := range fold(fmt.Sprintf("%s: %.0f tokens a step hide the transfer of its experts, this step has %.0f", unit, need, tokens), Width) {
			fmt.Fprintln(w, line)
		}
	}
}
