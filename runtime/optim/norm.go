package optim

import (
	"math"
	"sync"

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
	Half                bool // Grad is bf16, an even number of Elems
}

// SquaredNorm launches the sum of squares of one slab's gradient.
func SquaredNorm(q device.Queue, a SquaredNormArgs) {
	var args device.Args
	args.P = [device.MaxPtrs]device.Ptr{a.Grad, a.Norm, a.Scalars}
	args.I[0] = a.Elems
	if a.Half {
		q.Launch(&normHalfKernel, args)
		return
	}
	q.Launch(&normKernel, args)
}

var (
	normKernel     = device.Kernel{Name: "optim.SquaredNorm", CPU: normCPU, CUDA: normCUDA}
	normHalfKernel = device.Kernel{Name: "optim.SquaredNormHalf", CPU: normHalfCPU, CUDA: normHalfCUDA}
)

// normBlock is the elements of one partial sum. It is fixed, so that the result does not
// depend on the number of cores.
const normBlock = 1 << 15

// normRow is the elements of a block that are added side by side, and normThreads and normWarp
// how a GPU's threads then add those: optim.cu has the same order, so that both give the same
// bits.
const (
	normRow     = 1 << 10
	normThreads = 256
	normFinal   = 1 << 10 // threads that add the blocks
	normWarp    = 32
)

var rows = sync.Pool{New: func() any { return new([normRow]float64) }}

// blockSquares is the sum of squares of a block.
func blockSquares(g []float32) float64 {
	acc := rows.Get().(*[normRow]float64) // on the heap, as the loop is called through a pointer
	defer rows.Put(acc)
	clear(acc[:])
	for len(g) > 0 {
		n := min(len(g), normRow)
		vec.AddSquares(acc[:], g[:n])
		g = g[n:]
	}
	var of [normThreads]float64
	for t := range of {
		a := acc[4*t:]
		of[t] = (a[0] + a[1]) + (a[2] + a[3])
	}
	return threadsSum(of[:])
}

// blocksSum adds the sums of blocks.
func blocksSum(parts []float64) float64 {
	var of [normFinal]float64
	for i, p := range parts {
		of[i%normFinal] += p
	}
	return threadsSum(of[:])
}

// threadsSum is mtc.cuh's block_sum: a tree within each warp, then the warps in order.
func threadsSum(of []float64) float64 {
	var sum float64
	for w := 0; w < len(of); w += normWarp {
		for k := normWarp / 2; k > 0; k /= 2 {
			for i := range k {
				of[w+i] += of[w+i+k]
			}
		}
		if w == 0 {
			sum = of[0]
		} else {
			sum += of[w]
		}
	}
	return sum
}

func normCPU(c device.CPU, a *device.Args) {
	g := c.F32(a.P[0], a.I[0])
	norm(c, a, func(lo, hi int64) float64 { return blockSquares(g[lo:hi]) })
}

// norm adds up the squares of blocks and says in the scalars whether they are finite.
func norm(c device.CPU, a *device.Args, squares func(lo, hi int64) float64) {
	n := a.I[0]
	parts := make([]float64, (n+normBlock-1)/normBlock)
	c.Parallel(int64(len(parts)), 1, func(lo, hi int64) {
		for i := lo; i < hi; i++ {
			parts[i] = squares(i*normBlock, min((i+1)*normBlock, n))
		}
	})
	sum := blocksSum(parts)
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
