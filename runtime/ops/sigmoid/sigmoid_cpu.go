package sigmoid

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

func forwardCPU(c device.CPU, a *device.Args) { loops.Map(c, a, vec.Sigmoid) }

func backwardCPU(c device.CPU, a *device.Args) {
	loops.MapGradBlocks(c, a, func(dst, add, dy, y, t []float32) {
		vec.MulScale(t, y, y, -1)
		vec.Add(t, t, y) // y - y^2
		if add == nil {
			vec.Mul(dst, dy, t)
			return
		}
		vec.MulAdd(dst, dy, t, add)
	})
}
