package main

import (
	"fmt"
	"strings"
)

// curves tabulates the runs by stretches: the training loss of the first arm and how far the
// others are from it, and how many experts a token had. Means over the seeds; for the loss over those
// that both arms have.
func curves(m *manifest, done []result) string {
	var b strings.Builder
	head := func(title string) {
		fmt.Fprintf(&b, "\n| %s |", title)
		for i := range stretches {
			fmt.Fprintf(&b, " %d %% |", 100*(i+1)/stretches)
		}
		b.WriteString("\n|" + strings.Repeat("---|", stretches+1) + "\n")
	}
	first := map[int64][]float64{}
	for _, r := range done {
		if r.Arm == m.Arms[0].Name && len(r.Curve) == stretches {
			first[r.Seed] = r.Curve
		}
	}
	head("training loss up to")
	for _, a := range m.Arms {
		format := "%+.3f"
		if a.Name == m.Arms[0].Name {
			format = "%.3f"
		}
		row(&b, a.Name, format, done, func(r *result) []float64 {
			base := first[r.Seed]
			if r.Arm != a.Name || base == nil || len(r.Curve) != stretches {
				return nil
			}
			less := make([]float64, stretches)
			for i, x := range r.Curve {
				if less[i] = x; a.Name != m.Arms[0].Name {
					less[i] -= base[i]
				}
			}
			return less
		})
	}
	for _, t := range []struct {
		title, format string
		of            func(*result) []float64
	}{
		{"experts a token up to", "%.2f", func(r *result) []float64 { return r.Usage }},
		{"starved experts up to", "%.3f", func(r *result) []float64 { return r.Starved }},
		{"pairs dropped up to, at most", "%.3f", func(r *result) []float64 { return r.Dropped }},
	} {
		head(t.title)
		for _, a := range m.Arms {
			row(&b, a.Name, t.format, done, func(r *result) []float64 {
				if r.Arm != a.Name || len(t.of(r)) != stretches {
					return nil
				}
				return t.of(r)
			})
		}
	}
	return b.String()
}

// row writes the means of what pick takes of each run; nothing where it takes nothing.
func row(b *strings.Builder, name, format string, done []result, pick func(*result) []float64) {
	var sum [stretches]float64
	n := 0.0
	for i := range done {
		if x := pick(&done[i]); x != nil {
			n++
			for k, v := range x {
				sum[k] += v
			}
		}
	}
	if n == 0 {
		return
	}
	fmt.Fprintf(b, "| %s |", name)
	for _, v := range sum {
		b.WriteString(" " + fmt.Sprintf(format, v/n) + " |")
	}
	b.WriteString("\n")
}
