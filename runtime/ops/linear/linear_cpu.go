package linear

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/gemm"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

// spread is the length of rows of n elements that lie pitch apart.
func spread(rows, n, pitch int64) int64 {
	if rows == 0 {
		return 0
	}
	return (rows-1)*pitch + n
}

func forwardCPU(c device.CPU, a *device.Args) {
	rows, in, out, pitch := a.I[0], a.I[1], a.I[2], a.I[3]
	x, weight, bias := c.F32(a.P[0], rows*in), c.F32(a.P[1], out*in), c.F32(a.P[2], out)
	n := spread(rows, out, pitch)
	gemm.NTPitch(c, int(rows), int(out), int(in), c.F32(a.P[3], n), int(pitch), x, weight, c.F32(a.P[4], n), bias)
}

func backwardInputCPU(c device.CPU, a *device.Args) {
	rows, in, out, pitch := a.I[0], a.I[1], a.I[2], a.I[3]
	weight, dy := c.F32(a.P[0], out*in), c.F32(a.P[1], spread(rows, out, pitch))
	gemm.NNPitch(c, int(rows), int(in), int(out), c.F32(a.P[3], rows*in), dy, int(pitch), weight, c.F32(a.P[2], rows*in))
}

func backwardWeightCPU(c device.CPU, a *device.Args) {
	rows, in, out, pitch := a.I[0], a.I[1], a.I[2], a.I[3]
	x, dy := c.F32(a.P[0], rows*in), c.F32(a.P[1], spread(rows, out, pitch))
	gemm.TNPitch(c, int(out), int(in), int(rows), c.F32(a.P[3], out*in), dy, int(pitch), x, c.F32(a.P[2], out*in))
}

func backwardBiasCPU(c device.CPU, a *device.Args) {
	rows, out, pitch := a.I[0], a.I[2], a.I[3]
	dy := c.F32(a.P[0], spread(rows, out, pitch))
	loops.SumRows(c, rows, out, c.F32(a.P[2], out), c.F32(a.P[1], out), func(acc []float32, r int64) {
		vec.Add(acc, acc, dy[r*pitch:][:out])
	})
}
