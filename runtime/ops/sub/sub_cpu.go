package sub

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

func forwardCPU(c device.CPU, a *device.Args) { loops.Map2(c, a, vec.Sub) }

func backwardACPU(c device.CPU, a *device.Args) {
	loops.MapGrad(c, a, func(dst, add, dy, _ []float32) { vec.AddTo(dst, add, dy) })
}

func backwardBCPU(c device.CPU, a *device.Args) {
	loops.MapGrad(c, a, func(dst, add, dy, _ []float32) {
		if add == nil {
			vec.Scale(dst, dy, -1)
			return
		}
		vec.Sub(dst, add, dy)
	})
}
