package cost

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/megatrain/mtc/runtime/op"
)

// rate interpolates a table at a shape: among the points of the shape's form, the seconds a
// FLOP takes, each point weighted by one over its squared distance in powers of two. Beyond
// the table's largest sizes a rate stays what it is there. The point itself, where there is
// one, is exact. With enough, what is above it of a shape's and of the points' m makes no difference.
func (t *Table) rate(s op.Shape, enough int64) float64 {
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
	if enough > 0 {
		s.M = min(s.M, enough)
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
			if enough > 0 && i == 0 {
				n = min(n, enough)
			}
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

// average is how fast a CPU's kernels move so many bytes: those of rooms, whose names have a dot, and not
// passes over slabs. What nobody measured runs like them; a sum of two, which Memory is of, is the fastest.
func (r *Rates) average(bytes int64) float64 {
	n, sum := 0.0, 0.0
	for _, name := range slices.Sorted(maps.Keys(r.Kernels)) {
		if c := r.Kernels[name]; strings.Contains(name, ".") {
			n++
			sum += 1 / c.rate(bytes)
		}
	}
	if n == 0 {
		return r.Memory.Value
	}
	return n / sum
}

// epilogue is what a function costs that a product applies to its result. On a CPU it is a pass of its own
// behind the product; on a GPU more bytes move.
func (r *Rates) epilogue(l *Launch, cpu bool) float64 {
	if !strings.HasSuffix(l.Kernel, "Gelu") {
		return 0
	}
	if !cpu {
		return max(0, float64(l.Bytes)-operands(l)) / r.Memory.Value
	}
	kernel, passes := "gelu.Forward", int64(2)
	if strings.HasPrefix(l.Kernel, "linear.Backward") {
		kernel, passes = "gelu.Backward", 3
	}
	return r.moving(kernel, passes*4*l.Shape.M*l.Shape.N, r.Memory.Value)
}

// operands are the bytes of a product's operands in bf16, its result in f32 where it is a weight's
// gradient.
func operands(l *Launch) float64 {
	s := &l.Shape
	m, n, k := float64(s.M), float64(s.N), float64(s.K)
	in, out := (m*k+k*n)*float64(max(1, s.Count)), m*n*float64(max(1, s.Count))
	if s.Form == "tn" {
		return 2*in + 4*out
	}
	return 2 * (in + out)
}

// rest is what is left of a product whose operands are contiguous along a dim that is no multiple of 8,
// for which a GPU's library has no fast kernel: the device cuts it there (cuda/parts.go). The rest reads a
// whole operand again, or adds to the whole result, for next to no FLOPs.
func (r *Rates) rest(l *Launch) float64 {
	s := &l.Shape
	if s.Class != op.Product || s.Count > 1 || strings.HasSuffix(l.Kernel, "Gelu") {
		return 0
	}
	odd := func(n int64) bool { return n%8 != 0 && n >= 1024 }
	var elems int64
	switch {
	case s.Form == "nt" && odd(s.N):
		elems = s.M * s.K
	case s.Form == "nn" && odd(s.K):
		elems = 2 * s.M * s.N
	case s.Form == "tn" && odd(s.M):
		elems = s.K * s.N
	default:
		return 0
	}
	return max(r.Launch.Value, 2*float64(elems)/r.Memory.Value)
}

// adding is how much longer than first a launch of a CPU takes that adds to a gradient. A product reads it;
// a table of embeddings is not cleared then, and only the rows change that are named.
func (r *Rates) adding(l *Launch, first float64) float64 {
	switch {
	case l.Shape.Class == op.Product && l.Shape.Form == "tn":
		return r.moving("accumulate", 4*l.Shape.M*l.Shape.N*max(1, l.Shape.Count), r.Memory.Value)
	case l.Kernel == "embed.BackwardWeight":
		if rows := 12 * l.FLOPs; rows < l.Bytes { // of dy, read, and of as many of the table, read and written
			return r.moving(l.Kernel, rows, r.Memory.Value) - first
		}
	}
	return 0
}

// seconds is one launch, and what bounds it. A CPU has cores, a GPU 0.
func (r *Rates) seconds(l *Launch, cores int64) (float64, Bound) {
	s, b, cpu := 0.0, ByMemory, cores > 0
	switch l.Shape.Class {
	case op.Product:
		shape := l.Shape
		if cpu && shape.Groups > 0 { // it runs them one by one
			shape.M = max(1, shape.M/shape.Groups)
		}
		rate := r.Product.rate(shape, 0)
		if keep := r.Sustained.Value; keep > 0 {
			rate *= keep
		}
		s, b = float64(l.FLOPs)/rate+r.epilogue(l, cpu), ByProducts
	case op.Attending:
		s, b = float64(l.FLOPs)/r.Attention.rate(l.Shape, cores), ByAttention // a head each is enough for all cores
	}
	// Rates of products were measured with their operands moved; one whose bytes alone take
	// longer, a product with a vector, is bound by those.
	kernel := l.Kernel
	if _, ok := r.Kernels[kernel+op.WithNorm]; ok && l.Norm {
		kernel += op.WithNorm
	}
	otherwise := r.Memory.Value
	if cpu {
		otherwise = r.average(l.Bytes)
	}
	if x := r.moving(kernel, l.Bytes, otherwise); x > s {
		s, b = x, ByMemory
	}
	if r.Launch.Value > s {
		s, b = r.Launch.Value, ByLaunches
	}
	return s, b
}
