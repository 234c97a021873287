package mul

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

func forwardCPU(c device.CPU, a *device.Args) { loops.Map2(c, a, vec.Mul) }

func backwardACPU(c device.CPU, a *device.Args) { loops.MapGrad(c, a, product) }

func backwardBCPU(c device.CPU, a *device.Args) { loops.MapGrad(c, a, product) }

// product is dst = add + dy * other.
func product(dst, add, dy, other []float32) {
	if add == nil {
		vec.Mul(dst, dy, other)
		return
	}
	vec.MulAdd(dst, dy, other, add)
}
