package swiglu

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/inuse"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

func forwardCPU(c device.CPU, a *device.Args) { loops.Map2(c, a, vec.SwiGLU) }

func backwardCPU(c device.CPU, a *device.Args) {
	n := inuse.Elements(c, a)
	gate, up, dy := c.F32(a.P[0], n), c.F32(a.P[1], n), c.F32(a.P[2], n)
	addGate, dGate := c.F32(a.P[3], n), c.F32(a.P[4], n)
	addUp, dUp := c.F32(a.P[5], n), c.F32(a.P[6], n)
	loops.Elements(c, n, func(lo, hi int64) {
		vec.SwiGLUBackward(dGate[lo:hi], dUp[lo:hi], loops.Slice(addGate, lo, hi), loops.Slice(addUp, lo, hi),
			dy[lo:hi], gate[lo:hi], up[lo:hi])
	})
}
