package relu

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

func forwardCPU(c device.CPU, a *device.Args) { loops.Map(c, a, vec.Relu) }

// backwardCPU passes y where vec takes x: they are above 0 together.
func backwardCPU(c device.CPU, a *device.Args) { loops.MapGrad(c, a, vec.ReluBackward) }
