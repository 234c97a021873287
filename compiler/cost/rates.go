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

// rate is a curve's at a size; beyond its ends it stays what it is there.
func (c *Curve) rate(bytes int64) float64 {
	ps := c.Points
	if bytes <= ps[0].Bytes {
		return ps[0].Rate
	}
	for i := 1; i < len(ps); i++ {
		if a, b := ps[i-1], ps[i]; bytes <= b.Bytes {
			x := math.Log(float64(bytes)/float64(a.Bytes)) / math.Log(float64(b.Bytes)/float64(a.Bytes))
			return a.Rate + x*(b.Rate-a.Rate)
		}
	}
	return ps[len(ps)-1].Rate
}

// moving is the seconds a kernel needs for its bytes.
func (r *Rates) moving(kernel string, bytes int64, otherwise float64) float64 {
	if c, ok := r.Kernels[kernel]; ok {
		return float64(bytes) / c.rate(bytes)
	}
	return float64(bytes) / otherwise
}

// seconds is one launch, and what bounds it.
func (r *Rates) seconds(l *Launch) (float64, Bound) {
	s, b := 0.0, ByMemory
	switch l.Shape.Class {
	case op.Product:
		rate := r.Product.rate(l.Shape)
		if most := r.Sustained.Value; most > 0 {
			rate = min(rate, most)
		}
		s, b = float64(l.FLOPs)/rate, ByProducts
	case op.Attending:
		s, b = float64(l.FLOPs)/r.Attention.rate(l.Shape), ByAttention
	}
	// Rates of products were measured with their operands moved; one whose bytes alone take
	// longer, a product with a vector, is bound by those.
	if x := r.moving(l.Kernel, l.Bytes, r.Memory.Value); x > s {
		s, b = x, ByMemory
	}
	if r.Launch.Value > s {
		s, b = r.Launch.Value, ByLaunches
	}
	return s, b
}
