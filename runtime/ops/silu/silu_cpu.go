package silu

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

func forwardCPU(c device.CPU, a *device.Args) { loops.Map(c, a, vec.Silu) }

func backwardCPU(c device.CPU, a *device.Args) { loops.MapGrad(c, a, vec.SiluBackward) }
