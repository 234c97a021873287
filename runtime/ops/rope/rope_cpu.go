package rope

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

func forwardCPU(c device.CPU, a *device.Args) { turn(c, a, false) }

func backwardCPU(c device.CPU, a *device.Args) { turn(c, a, true) }

// turn rotates every pair of P[0] into P[3], adding P[2] when it is there.
func turn(c device.CPU, a *device.Args, back bool) {
	rows, seq, pos, d, hd := a.I[0], a.I[1], a.I[2], a.I[3], a.I[4]
	rotate := vec.RotateHalf
	if a.I[5] != 0 {
		rotate = vec.RotatePairs
	}
	x, add, y := c.F32(a.P[0], rows*d), c.F32(a.P[2], rows*d), c.F32(a.P[3], rows*d)
	cs := c.F32(a.P[1], (pos+seq)*hd)
	starts := c.I32(a.P[4], rows)
	loops.Rows(c, rows, d, func(lo, hi int64) {
		negated := loops.Floats(hd / 2)
		defer negated.Free()
		for r := lo; r < hi; r++ {
			at := pos + r%seq
			if starts != nil {
				at -= int64(starts[r])
			}
			row := cs[at*hd:][:hd]
			cos, sin := row[:hd/2], row[hd/2:]
			if back {
				vec.Scale(negated.F, sin, -1)
				sin = negated.F
			}
			for i := r * d; i < (r+1)*d; i += hd {
				rotate(y[i:i+hd], loops.Slice(add, i, i+hd), x[i:i+hd], cos, sin)
			}
		}
	})
}
