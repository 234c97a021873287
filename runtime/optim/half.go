package optim

import (
	"math"
	"sync"

	"github.com/megatrain/mtc/runtime/device"
)

// A gradient may cross the link in bf16: whole and in f32 it is rounded on the device, and from
// then on norm and update are of what was rounded, so that the clip factor is that of the
// gradient that is applied.

// RoundArgs: Half, Elems bf16, = Grad, Elems f32, rounded to nearest, ties to even. What is
// beyond bf16 becomes infinite and NaN stays NaN, so that the norm tells. Elems is even.
type RoundArgs struct {
	Grad, Half device.Ptr
	Elems      int64
}

// Round launches the rounding of one slab's gradient.
func Round(q device.Queue, a RoundArgs) {
	var args device.Args
	args.P = [device.MaxPtrs]device.Ptr{a.Half, a.Grad}
	args.I[0] = a.Elems
	q.Launch(&roundKernel, args)
}

var roundKernel = device.Kernel{Name: "optim.Round", CPU: roundCPU, CUDA: roundCUDA}

func roundCPU(c device.CPU, a *device.Args) {
	n := a.I[0]
	half, g := halves(c, a.P[0], n), c.F32(a.P[1], n)
	c.Parallel(n, normBlock, func(lo, hi int64) {
		for i, x := range g[lo:hi] {
			half[lo+int64(i)] = toHalf(x)
		}
	})
}

// toHalf is the bf16 nearest to x, ties to even.
func toHalf(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 0x40 // stays NaN whatever its lower bits are
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// scratch is the elements of a gradient that are widened at once for an update: they stay in a
// core's nearest cache. A norm takes a block.
const scratch = 1 << 12

var scratches = sync.Pool{New: func() any { return new([normBlock]float32) }}

// widen writes bf16 as f32.
func widen(dst []float32, half []uint16) {
	for i, h := range half {
		dst[i] = math.Float32frombits(uint32(h) << 16)
	}
}

func normHalfCPU(c device.CPU, a *device.Args) {
	n := a.I[0]
	g := halves(c, a.P[0], n)
	norm(c, a, func(lo, hi int64) float64 {
		wide := scratches.Get().(*[normBlock]float32)
		defer scratches.Put(wide)
		widen(wide[:], g[lo:hi])
		return blockSquares(wide[:hi-lo])
	})
}

// gradient is that of an update, in f32 or in bf16.
type gradient struct {
	f32  []float32
	half []uint16
}

// gradientOf is the gradient of n elements at p.
func gradientOf(c device.CPU, p device.Ptr, n int64, half bool) gradient {
	if half {
		return gradient{half: halves(c, p, n)}
	}
	return gradient{f32: c.F32(p, n)}
}

// each calls f with pieces of [lo, hi) in order and their gradient.
func (g gradient) each(lo, hi int64, f func(lo, hi int64, g []float32)) {
	if g.half == nil {
		if lo < hi {
			f(lo, hi, g.f32[lo:hi])
		}
		return
	}
	wide := scratches.Get().(*[normBlock]float32)
	for ; lo < hi; lo += scratch {
		end := min(lo+scratch, hi)
		widen(wide[:], g.half[lo:end])
		f(lo, end, wide[:end-lo])
	}
	scratches.Put(wide)
}
