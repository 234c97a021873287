package scale

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

func forwardCPU(c device.CPU, a *device.Args) {
	by := a.F[0]
	loops.Map(c, a, func(dst, x []float32) { vec.Scale(dst, x, by) })
}

func backwardCPU(c device.CPU, a *device.Args) {
	by := a.F[0]
	loops.MapGrad(c, a, func(dst, add, dy, _ []float32) {
		if add == nil {
			vec.Scale(dst, dy, by)
			return
		}
		vec.AddScaled(dst, add, by, dy)
	})
}
