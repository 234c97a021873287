package schedule

import (
	"fmt"
	"io"
	"strings"

	"github.com/megatrain/mtc/runtime/plan"
)

// FileRouter is a mixture of experts.
type FileRouter struct {
	Name    string  `json:"name"`    // "layer[3].moe"
	Kind    string  `json:"kind"`    // "threshold", "expert_choice" or "topk"
	Experts int64   `json:"experts"` // routed ones
	Mean    float64 `json:"mean"`    // experts a token that the router aims at
	Slots   int64   `json:"slots"`   // rows a token that memory is made for
	Params  int64   `json:"params"`  // of the routed experts
	Width   int64   `json:"width"`   // of an expert
	// Granularity and Expansion are what papers call G and E: 4 D over the width, and the number
	// of experts over that.
	Granularity float64 `json:"granularity"`
	Expansion   float64 `json:"expansion"`
}

// fileRouters describes a plan's mixtures, and counts the parameters that a token passes.
func fileRouters(p *plan.Plan) (out []FileRouter, active int64) {
	if len(p.Routers) == 0 {
		return nil, 0
	}
	idle := 0.0
	for i := range p.Routers {
		r := &p.Routers[i]
		f := FileRouter{Name: r.Name, Kind: r.Kind, Experts: r.Experts, Mean: r.Mean, Slots: r.Slots}
		var dim int64
		for k := range p.Slabs {
			for j := range p.Slabs[k].Params {
				switch q := &p.Slabs[k].Params[j]; {
				case q.Name == r.Name+".router.weight":
					dim = q.Shape[1]
				case strings.HasPrefix(q.Name, r.Name+".expert["):
					if f.Width == 0 && len(q.Shape) == 2 {
						f.Width = q.Shape[0] // the first linear of the first expert
					}
					n := int64(1)
					for _, d := range q.Shape {
						n *= d
					}
					f.Params += n
				}
			}
		}
		if f.Width > 0 {
			f.Granularity = 4 * float64(dim) / float64(f.Width)
			f.Expansion = float64(r.Experts) / f.Granularity
		}
		idle += float64(f.Params) * (1 - r.Mean/float64(r.Experts))
		out = append(out, f)
	}
	return out, p.NumParams - int64(idle+0.5)
}

// ActiveParams is how many of a plan's parameters a token passes on average: all, but for those
// of experts that it does not go to.
func ActiveParams(p *plan.Plan) int64 {
	if _, n := fileRouters(p); n > 0 {
		return n
	}
	return p.NumParams
}

// writeRouters says what a token passes, and what the mixtures are; equal ones once.
func (f *File) writeRouters(w io.Writer) {
	if len(f.Routers) == 0 {
		return
	}
	fmt.Fprintf(w, "a token passes %s parameters of %s\n", Count(f.Active), Count(f.Params))
	count := map[FileRouter]int{}
	for _, r := range f.Routers {
		r.Name = ""
		count[r]++
	}
	for _, r := range f.Routers {
		name := r.Name
		r.Name = ""
		n := count[r]
		if n == 0 {
			continue
		}
		count[r] = 0
		if n > 1 {
			name += fmt.Sprintf(" and %d more", n-1)
		}
		fmt.Fprintf(w, "%s: %s, %.4g of %d experts of width %d a token, rows for %d\n", name, r.Kind, r.Mean, r.Experts, r.Width, r.Slots)
		fmt.Fprintf(w, "  in the papers' terms granularity G = %.4g, expansion E = %.4g\n", r.Granularity, r.Expansion)
	}
}
