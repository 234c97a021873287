package rope

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

func forwardCPU(c device.CPU, a *device.Args) { turn(c, a, false) }

func backwardCPU(c device.CPU, a *device.Args) { turn(c, a, true) }

// pass copies what does not turn, adding where there is something to add.
func pass(y, add, x []float32) {
	if add == nil {
		copy(y, x)
	} else if len(x) > 0 {
		vec.Add(y, add, x)
	}
}

// turn rotates the pairs of P[0] into P[3], adding P[2] when it is there.
func turn(c device.CPU, a *device.Args, back bool) {
	rows, seq, pos, d, hd, dims := a.I[0], a.I[1], a.I[2], a.I[3], a.I[4], a.I[6]
	rotate := vec.RotateHalf
	if a.I[5] != 0 {
		rotate = vec.RotatePairs
	}
	x, add, y := c.F32(a.P[0], rows*d), c.F32(a.P[2], rows*d), c.F32(a.P[3], rows*d)
	cs := c.F32(a.P[1], (pos+seq)*dims)
	starts := c.I32(a.P[4], rows)
	loops.Rows(c, rows, d, func(lo, hi int64) {
		negated := loops.Floats(dims / 2)
		defer negated.Free()
		for r := lo; r < hi; r++ {
			at := pos + r%seq
			if starts != nil {
				at -= int64(starts[r])
			}
			row := cs[at*dims:][:dims]
			cos, sin := row[:dims/2], row[dims/2:]
			if back {
				vec.Scale(negated.F, sin, -1)
				sin = negated.F
			}
			for i := r * d; i < (r+1)*d; i += hd {
				rotate(y[i:i+dims], loops.Slice(add, i, i+dims), x[i:i+dims], cos, sin)
				pass(y[i+dims:i+hd], loops.Slice(add, i+dims, i+hd), x[i+dims:i+hd])
			}
		}
	})
}
