package linear

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/gemm"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

func forwardCPU(c device.CPU, a *device.Args) {
	rows, in, out := a.I[0], a.I[1], a.I[2]
	x, weight, bias := c.F32(a.P[0], rows*in), c.F32(a.P[1], out*in), c.F32(a.P[2], out)
	gemm.NT(c, int(rows), int(out), int(in), c.F32(a.P[3], rows*out), x, weight, nil, bias)
}

func backwardInputCPU(c device.CPU, a *device.Args) {
	rows, in, out := a.I[0], a.I[1], a.I[2]
	weight, dy := c.F32(a.P[0], out*in), c.F32(a.P[1], rows*out)
	gemm.NN(c, int(rows), int(in), int(out), c.F32(a.P[3], rows*in), dy, weight, c.F32(a.P[2], rows*in))
}

func backwardWeightCPU(c device.CPU, a *device.Args) {
	rows, in, out := a.I[0], a.I[1], a.I[2]
	x, dy := c.F32(a.P[0], rows*in), c.F32(a.P[1], rows*out)
	gemm.TN(c, int(out), int(in), int(rows), c.F32(a.P[3], out*in), dy, x, c.F32(a.P[2], out*in))
}

func backwardBiasCPU(c device.CPU, a *device.Args) {
	rows, out := a.I[0], a.I[2]
	dy := c.F32(a.P[0], rows*out)
	loops.SumRows(c, rows, out, c.F32(a.P[2], out), c.F32(a.P[1], out), func(acc []float32, r int64) {
		vec.Add(acc, acc, dy[r*out:(r+1)*out])
	})
}
