package optim

import (
	"math"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/vec"
)

// SquaredNormArgs: Norm (one f64) = sum of squares of the Elems f32 of Grad. When Scalars is
// not nil (no clipping: updates do not wait for Reduce) a result that is not finite sets the
// skip flag there, which stays set for the rest of the step.
type SquaredNormArgs struct {
	Grad, Norm, Scalars device.Ptr
	Elems               int64
}

// SquaredNorm launches the sum of squares of one slab's gradient.
func SquaredNorm(q device.Queue, a SquaredNormArgs) {
	var args device.Args
	args.P = [device.MaxPtrs]device.Ptr{a.Grad, a.Norm, a.Scalars}
	args.I[0] = a.Elems
	q.Launch(&normKernel, args)
}

var normKernel = device.Kernel{Name: "optim.SquaredNorm", CPU: normCPU, CUDA: normCUDA}

// normBlock is the elements of one partial sum. It is fixed, so that the result does not
// depend on the number of cores.
const normBlock = 1 << 15

func normCPU(c device.CPU, a *device.Args) {
	n := a.I[0]
	g := c.F32(a.P[0], n)
	parts := make([]float64, (n+normBlock-1)/normBlock)
	c.Parallel(int64(len(parts)), 1, func(lo, hi int64) {
		for i := lo; i < hi; i++ {
			parts[i] = vec.SumSq(g[i*normBlock : min((i+1)*normBlock, n)])
		}
	})
	var sum float64
	for _, p := range parts {
		sum += p
	}
	c.F64(a.P[1], 1)[0] = sum
	if !a.P[2].Nil() && !finite(sum) {
		c.F64(a.P[2], plan.NumScalars)[plan.ScalarSkip] = 1
	}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// AccumulateArgs: Dst += Src, Elems f32 each; with First, Dst = Src.
type AccumulateArgs struct {
	Dst, Src device.Ptr
	Elems    int64
	First    bool
}

// Accumulate launches the addition of one group's gradient to the step's.
func Accumulate(q device.Queue, a AccumulateArgs) {
	var args device.Args
	args.P = [device.MaxPtrs]device.Ptr{a.Dst, a.Src}
	args.I[0] = a.Elems
	if a.First {
		args.I[1] = 1
	}
	q.Launch(&accumulateKernel, args)
}

var accumulateKernel = device.Kernel{Name: "optim.Accumulate", CPU: accumulateCPU, CUDA: accumulateCUDA}

func accumulateCPU(c device.CPU, a *device.Args) {
	n, first := a.I[0], a.I[1] != 0
	dst, src := c.F32(a.P[0], n), c.F32(a.P[1], n)
	c.Parallel(n, normBlock, func(lo, hi int64) {
		if first {
			copy(dst[lo:hi], src[lo:hi])
			return
		}
		vec.Add(dst[lo:hi], dst[lo:hi], src[lo:hi])
	})
}
