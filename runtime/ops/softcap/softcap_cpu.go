package softcap

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

func forwardCPU(c device.CPU, a *device.Args) {
	cap := a.F[0]
	loops.Map(c, a, func(dst, x []float32) { vec.Softcap(dst, x, cap) })
}

func backwardCPU(c device.CPU, a *device.Args) {
	s := float32(-1 / (float64(a.F[0]) * float64(a.F[0])))
	loops.MapGradBlocks(c, a, func(dst, add, dy, y, t []float32) {
		vec.MulScale(t, y, y, s)
		vec.MulAdd(t, dy, t, dy)
		vec.AddTo(dst, add, t)
	})
}
