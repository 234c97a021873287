package optim

import (
	"unsafe"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/vec"
)

// AdamWSplitArgs are AdamWArgs with the weights as a split master: Hi holds Elems bf16, which
// the GPU computes with, and Lo Elems int16, such that
//
//	bits(master) = (Hi << 16) + Lo
//
// Hi is the master rounded to nearest, ties away from 0 (a Lo of +2^15 would not fit). Elems
// is even.
type AdamWSplitArgs struct {
	Hi, Lo, Grad, M, V, Scalars device.Ptr
	Elems, Decay                int64
	Beta1, Beta2, Eps           float64
	WeightDecay                 float64
	Half                        bool // Grad is bf16, on the CPU
}

// AdamWSplit launches AdamW on the exact f32 master.
func AdamWSplit(q device.Queue, a AdamWSplitArgs) {
	var args device.Args
	args.P = [device.MaxPtrs]device.Ptr{a.Hi, a.Grad, a.M, a.V, a.Scalars, a.Lo}
	args.I = [device.MaxInts]int64{a.Elems, a.Decay,
		bits(a.Beta1), bits(a.Beta2), bits(a.Eps), bits(a.WeightDecay), flag(a.Half)}
	q.Launch(&splitKernel, args)
}

var splitKernel = device.Kernel{Name: "optim.AdamWSplit", CPU: splitCPU, CUDA: splitCUDA}

func splitCPU(c device.CPU, a *device.Args) {
	s := c.F64(a.P[4], plan.NumScalars)
	if s[plan.ScalarSkip] != 0 {
		return
	}
	n, decay := a.I[0], a.I[1]
	k, decayed := adamwCoefs(s, a)
	hi, lo := halves(c, a.P[0], n), halves(c, a.P[5], n)
	m, v := c.F32(a.P[2], n), c.F32(a.P[3], n)
	grad := gradientOf(c, a.P[1], n, a.I[6] != 0)
	step := func(k *vec.AdamW) func(from, to int64, g []float32) {
		return func(from, to int64, g []float32) {
			vec.AdamWSplitStep(hi[from:to], lo[from:to], g, m[from:to], v[from:to], k)
		}
	}
	c.Parallel(n, adamwGrain, func(from, to int64) {
		d := max(from, min(to, decay))
		grad.each(from, d, step(&decayed))
		grad.each(d, to, step(&k))
	})
}

// halves are the n 16-bit halves at p; n is even.
func halves(c device.CPU, p device.Ptr, n int64) []uint16 {
	words := c.I32(p, n/2)
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(words))), n)
}
