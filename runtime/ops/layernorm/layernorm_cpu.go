package layernorm

import (
	"math"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

func forwardCPU(c device.CPU, a *device.Args) {
	rows, d := a.I[0], a.I[1]
	x, weight, bias, y := c.F32(a.P[0], rows*d), c.F32(a.P[1], d), c.F32(a.P[2], d), c.F32(a.P[3], rows*d)
	mean, inv := c.F32(a.P[4], rows), c.F32(a.P[5], rows)
	eps := float64(a.F[0])
	loops.Rows(c, rows, d, func(lo, hi int64) {
		for r := lo; r < hi; r++ {
			xr := x[r*d : (r+1)*d]
			m := float32(vec.Sum(xr) / float64(d))
			s := float32(1 / math.Sqrt(vec.SumSqDev(xr, m)/float64(d)+eps))
			mean[r], inv[r] = m, s
			vec.NormApply(y[r*d:(r+1)*d], xr, m, s, weight, bias)
		}
	})
}

// backwardCPU makes the sums over rows first, since dx may lie where x or dy does.
func backwardCPU(c device.CPU, a *device.Args) {
	rows, d := a.I[0], a.I[1]
	x, mean, inv, dy := c.F32(a.P[0], rows*d), c.F32(a.P[2], rows), c.F32(a.P[3], rows), c.F32(a.P[4], rows*d)
	if !a.P[8].Nil() {
		loops.SumRows(c, rows, d, c.F32(a.P[8], d), c.F32(a.P[7], d), func(acc []float32, r int64) {
			vec.NormWeight(acc, nil, dy[r*d:(r+1)*d], x[r*d:(r+1)*d], mean[r], inv[r])
		})
	}
	if !a.P[10].Nil() {
		loops.SumRows(c, rows, d, c.F32(a.P[10], d), c.F32(a.P[9], d), func(acc []float32, r int64) {
			vec.Add(acc, acc, dy[r*d:(r+1)*d])
		})
	}
	backwardInputCPU(c, a)
}

// backwardInputCPU makes xhat in scratch memory before it takes mean(g * xhat): taking it
// from sums over x would cancel where the mean of a row is large against its deviation.
func backwardInputCPU(c device.CPU, a *device.Args) {
	rows, d := a.I[0], a.I[1]
	x, weight, mean, inv := c.F32(a.P[0], rows*d), c.F32(a.P[1], d), c.F32(a.P[2], rows), c.F32(a.P[3], rows)
	dy, add, dx := c.F32(a.P[4], rows*d), c.F32(a.P[5], rows*d), c.F32(a.P[6], rows*d)
	loops.Rows(c, rows, d, func(lo, hi int64) {
		scratch := loops.Floats(d)
		defer scratch.Free()
		xhat := scratch.F
		for r := lo; r < hi; r++ {
			i, j := r*d, (r+1)*d
			vec.NormApply(xhat, x[i:j], mean[r], inv[r], nil, nil)
			var g, gx float64
			if weight == nil {
				g, gx = vec.Sum(dy[i:j]), vec.Dot(dy[i:j], xhat)
			} else {
				g, gx = vec.Dot(dy[i:j], weight), vec.Dot3(dy[i:j], weight, xhat)
			}
			vec.NormBackward(dx[i:j], loops.Slice(add, i, j), dy[i:j], x[i:j], weight,
				mean[r], inv[r], float32(g/float64(d)), float32(gx/float64(d)))
		}
	})
}
