package fill

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

func forwardCPU(c device.CPU, a *device.Args) {
	y, value := c.F32(a.P[0], a.I[0]), a.F[0]
	loops.Elements(c, a.I[0], func(lo, hi int64) { vec.Fill(y[lo:hi], value) })
}
