package cost

import (
	"math"

	"github.com/megatrain/mtc/runtime/op"
)

// rate interpolates a table at a shape: among the points of the shape's form, the seconds a
// FLOP takes, each point weighted by one over its squared distance in powers of two. Beyond
// the table's largest sizes a rate stays what it is there. The point itself, where there is
// one, is exact.
func (t *Table) rate(s op.Shape) float64 {
	known := false
	var most, least [3]int64
	for _, p := range t.Points {
		if p.Form != s.Form {
			continue
		}
		size := [3]int64{p.M, p.N, p.K}
		for i, n := range size {
			if !known || n > most[i] {
				most[i] = n
			}
			if !known || n < least[i] {
				least[i] = n
			}
		}
		known = true
	}
	if !known {
		// A form that nobody measured runs like the average of those that were.
		var sum float64
		for _, p := range t.Points {
			sum += 1 / p.Rate
		}
		return float64(len(t.Points)) / sum
	}
	var at [3]float64
	for i, n := range [3]int64{s.M, s.N, s.K} {
		at[i] = math.Log2(float64(max(1, min(n, most[i]))))
	}
	var weights, sum float64
	for _, p := range t.Points {
		if p.Form != s.Form {
			continue
		}
		d := 0.0
		for i, n := range [3]int64{p.M, p.N, p.K} {
			x := at[i] - math.Log2(float64(n))
			d += x * x
		}
		if d < 1e-9 {
			return p.Rate
		}
		w := 1 / (d * d) // near points count for much more than far ones
		weights += w
		sum += w / p.Rate
	}
	return weights / sum
}

// seconds is one launch without what starting it costs, and what bounds it.
func (r *Rates) seconds(l *Launch) (float64, Bound) {
	memory := r.Memory.Value
	if f, ok := r.Kernels[l.Kernel]; ok {
		memory = f.Value
	}
	bytes := float64(l.Bytes) / memory
	switch l.Shape.Class {
	case op.Product:
		if x := float64(l.FLOPs) / r.Product.rate(l.Shape); x > bytes {
			return x, ByProducts
		}
	case op.Attending:
		if x := float64(l.FLOPs) / r.Attention.rate(l.Shape); x > bytes {
			return x, ByAttention
		}
	}
	return bytes, ByMemory
}
