package rmsnorm

import (
	"math"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

// The kernels run over groups: row r, group g is element (r*D/Per + g) of inv and a run of
// Per elements of x.

func forwardCPU(c device.CPU, a *device.Args) {
	rows, d, per := a.I[0], a.I[1], a.I[2]
	groups := rows * d / per
	x, weight, y, inv := c.F32(a.P[0], rows*d), c.F32(a.P[1], per), c.F32(a.P[2], rows*d), c.F32(a.P[3], groups)
	eps := float64(a.F[0])
	loops.Rows(c, groups, per, func(lo, hi int64) {
		for g := lo; g < hi; g++ {
			xg := x[g*per : (g+1)*per]
			s := float32(1 / math.Sqrt(vec.SumSq(xg)/float64(per)+eps))
			inv[g] = s
			vec.NormApply(y[g*per:(g+1)*per], xg, 0, s, weight, nil)
		}
	})
}

// backwardCPU makes the sum over rows first, since dx may lie where x or dy does.
func backwardCPU(c device.CPU, a *device.Args) {
	rows, d, per := a.I[0], a.I[1], a.I[2]
	if !a.P[7].Nil() {
		heads := d / per
		x, inv, dy := c.F32(a.P[0], rows*d), c.F32(a.P[2], rows*heads), c.F32(a.P[3], rows*d)
		loops.SumRows(c, rows, d, c.F32(a.P[7], per), c.F32(a.P[6], per), func(acc []float32, r int64) {
			for h := range heads {
				i, j := r*d+h*per, r*d+(h+1)*per
				vec.NormWeight(acc[h*per:(h+1)*per], nil, dy[i:j], x[i:j], 0, inv[r*heads+h])
			}
		})
	}
	backwardInputCPU(c, a)
}

func backwardInputCPU(c device.CPU, a *device.Args) {
	rows, d, per := a.I[0], a.I[1], a.I[2]
	groups := rows * d / per
	x, weight, inv, dy := c.F32(a.P[0], rows*d), c.F32(a.P[1], per), c.F32(a.P[2], groups), c.F32(a.P[3], rows*d)
	add, dx := c.F32(a.P[4], rows*d), c.F32(a.P[5], rows*d)
	loops.Rows(c, groups, per, func(lo, hi int64) {
		for g := lo; g < hi; g++ {
			i, j := g*per, (g+1)*per
			var dot float64
			if weight == nil {
				dot = vec.Dot(dy[i:j], x[i:j])
			} else {
				dot = vec.Dot3(dy[i:j], weight, x[i:j])
			}
			mean := float32(dot * float64(inv[g]) / float64(per))
			vec.NormBackward(dx[i:j], loops.Slice(add, i, j), dy[i:j], x[i:j], weight, 0, inv[g], 0, mean)
		}
	})
}
