package grouped

import (
	"math"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

// norms are the constants and the operands that every launch of a norm has; a group g of row r is
// element r*heads + g of the statistics and a run of per elements of x.
type norms struct {
	sizes
	d, per, heads  int64
	x, center, inv []float32
}

func normsOf(c device.CPU, a *device.Args) norms {
	n := norms{sizes: sizes{experts: a.I[2], m: a.I[0] * a.I[3]}, d: a.I[1], per: a.I[4], heads: a.I[1] / a.I[4]}
	n.x, n.center, n.inv = c.F32(a.P[0], n.m*n.d), c.F32(a.P[3], n.m*n.heads), c.F32(a.P[4], n.m*n.heads)
	return n
}

// middle is the mean that was taken off a group.
func (n *norms) middle(g int64) float32 {
	if n.center == nil {
		return 0
	}
	return n.center[g]
}

func normCPU(c device.CPU, a *device.Args) {
	n := normsOf(c, a)
	weight, bias, y := c.F32(a.P[1], n.experts*n.per), c.F32(a.P[5], n.experts*n.d), c.F32(a.P[6], n.m*n.d)
	eps, per := float64(a.F[0]), n.per
	n.each(c, a.P[2], func(e, lo, hi int64) {
		w := part(weight, e*per, (e+1)*per)
		loops.Rows(c, (hi-lo)*n.heads, per, func(from, to int64) {
			for g := lo*n.heads + from; g < lo*n.heads+to; g++ {
				x := n.x[g*per : (g+1)*per]
				var m float32
				if n.center != nil {
					m = float32(vec.Sum(x) / float64(per))
					n.center[g] = m
				}
				// Deviations are squared, not x: that would cancel where the mean is large.
				s := float32(1 / math.Sqrt(vec.SumSqDev(x, m)/float64(per)+eps))
				n.inv[g] = s
				at := e*n.d + g%n.heads*per
				vec.NormApply(y[g*per:(g+1)*per], x, m, s, w, part(bias, at, at+per))
			}
		})
	})
}

func normBackwardWeightCPU(c device.CPU, a *device.Args) {
	n := normsOf(c, a)
	dy, d, per := c.F32(a.P[5], n.m*n.d), n.d, n.per
	addW, dw := c.F32(a.P[6], n.experts*per), c.F32(a.P[7], n.experts*per)
	addB, db := c.F32(a.P[8], n.experts*d), c.F32(a.P[9], n.experts*d)
	n.each(c, a.P[2], func(e, lo, hi int64) {
		if dw != nil {
			rowSums(c, hi-lo, d, dw[e*per:(e+1)*per], part(addW, e*per, (e+1)*per), func(acc []float32, r int64) {
				for h := range n.heads {
					g := (lo+r)*n.heads + h
					vec.NormWeight(acc[h*per:(h+1)*per], nil, dy[g*per:(g+1)*per], n.x[g*per:(g+1)*per], n.middle(g), n.inv[g])
				}
			})
		}
		if db != nil {
			rowSums(c, hi-lo, d, db[e*d:(e+1)*d], part(addB, e*d, (e+1)*d), func(acc []float32, r int64) {
				vec.Add(acc, acc, dy[(lo+r)*d:][:d])
			})
		}
	})
}

// rowSums is loops.SumRows for an expert that may have no rows.
func rowSums(c device.CPU, rows, width int64, to, from []float32, row func(acc []float32, r int64)) {
	switch {
	case rows > 0:
		loops.SumRows(c, rows, width, to, from, row)
	case from == nil:
		clear(to)
	default:
		copy(to, from)
	}
}

func normBackwardInputCPU(c device.CPU, a *device.Args) {
	n := normsOf(c, a)
	weight, dy, add, dx := c.F32(a.P[1], n.experts*n.per), c.F32(a.P[5], n.m*n.d), c.F32(a.P[6], n.m*n.d), c.F32(a.P[7], n.m*n.d)
	per := n.per
	n.each(c, a.P[2], func(e, lo, hi int64) {
		w := part(weight, e*per, (e+1)*per)
		loops.Rows(c, (hi-lo)*n.heads, per, func(from, to int64) {
			scratch := loops.Floats(per)
			defer scratch.Free()
			xhat := scratch.F
			for g := lo*n.heads + from; g < lo*n.heads+to; g++ {
				i, j := g*per, (g+1)*per
				m, s := n.middle(g), n.inv[g]
				vec.NormApply(xhat, n.x[i:j], m, s, nil, nil)
				var sum, dot float64
				if w == nil {
					dot = vec.Dot(dy[i:j], xhat)
				} else {
					dot = vec.Dot3(dy[i:j], w, xhat)
				}
				switch {
				case n.center == nil:
				case w == nil:
					sum = vec.Sum(dy[i:j])
				default:
					sum = vec.Dot(dy[i:j], w)
				}
				vec.NormBackward(dx[i:j], loops.Slice(add, i, j), dy[i:j], n.x[i:j], w, m, s, float32(sum/float64(per)), float32(dot/float64(per)))
			}
		})
	})
}
