package optim

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/squares"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/vec"
)

// normBlock is the elements that are worth a hand-over to another core.
const normBlock = squares.Block

// AccumulateArgs: Dst += Src, Elems f32 each; with First, Dst = Src. Squares, when not nil, are made of
// what Dst is then, on the host: gradients add up there.
type AccumulateArgs struct {
	Dst, Src, Squares device.Ptr
	Elems             int64
	First             bool
}

// Accumulate launches the addition of one group's gradient to the step's.
func Accumulate(q device.Queue, a AccumulateArgs) {
	var args device.Args
	args.P = [device.MaxPtrs]device.Ptr{a.Dst, a.Src, a.Squares}
	args.I[0] = a.Elems
	if a.First {
		args.I[1] = 1
	}
	q.Launch(&accumulateKernel, args)
}

var accumulateKernel = device.Kernel{Name: "optim.Accumulate", CPU: accumulateCPU, CUDA: accumulateCUDA}

func accumulateCPU(c device.CPU, a *device.Args) {
	n, first := a.I[0], a.I[1] != 0
	dst, src, parts := c.F32(a.P[0], n), c.F32(a.P[1], n), c.F64(a.P[2], plan.SquaresBlocks(n))
	c.Parallel(plan.SquaresBlocks(n), 1, func(lo, hi int64) {
		for b := lo; b < hi; b++ {
			d, s := dst[b*normBlock:min((b+1)*normBlock, n)], src[b*normBlock:min((b+1)*normBlock, n)]
			if first {
				copy(d, s)
			} else {
				vec.Add(d, d, s)
			}
			if parts != nil {
				parts[b] = squares.OfBlock(d)
			}
		}
	})
}
