package gelu

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

func forwardCPU(c device.CPU, a *device.Args) {
	if a.I[2] != 0 {
		loops.Map(c, a, vec.GeluErf)
		return
	}
	loops.Map(c, a, vec.GeluTanh)
}

func backwardCPU(c device.CPU, a *device.Args) {
	if a.I[2] != 0 {
		loops.MapGrad(c, a, vec.GeluErfBackward)
		return
	}
	loops.MapGrad(c, a, vec.GeluTanhBackward)
}
