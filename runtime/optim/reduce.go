package optim

import (
	"math"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// ReduceArgs are the operands of the step's reduction. Norms holds NumNorms f64, one for each
// slab; Partials holds NumPartials pairs {sum of losses, targets}, one for each micro-batch,
// PartialStride bytes apart (0: 16, without gaps). Both are added in order.
type ReduceArgs struct {
	Scalars, Norms, Partials device.Ptr
	NumNorms, NumPartials    int64
	PartialStride            int64
}

// Reduce launches the end of a step's backward: into Scalars it writes the global gradient
// norm, the clip factor min(1, max / (norm + 1e-6)) (as torch.nn.utils.clip_grad_norm_; 1
// when the threshold is 0), the mean loss and the number of targets. It sets the skip flag
// when the norm or the loss is not finite and leaves it set if it was.
func Reduce(q device.Queue, a ReduceArgs) {
	var args device.Args
	args.P = [device.MaxPtrs]device.Ptr{a.Scalars, a.Norms, a.Partials}
	if a.PartialStride == 0 {
		a.PartialStride = 16
	}
	args.I = [device.MaxInts]int64{a.NumNorms, a.NumPartials, a.PartialStride}
	q.Launch(&reduceKernel, args)
}

var reduceKernel = device.Kernel{Name: "optim.Reduce", CPU: reduceCPU, CUDA: reduceCUDA}

func reduceCPU(c device.CPU, a *device.Args) {
	s := c.F64(a.P[0], plan.NumScalars)
	var squares, loss, tokens float64
	for _, n := range c.F64(a.P[1], a.I[0]) {
		squares += n
	}
	for i := range a.I[1] {
		pair := c.F64(a.P[2].At(i*a.I[2]), 2)
		loss += pair[0]
		tokens += pair[1]
	}
	norm, mean := math.Sqrt(squares), loss/tokens
	clip := 1.0
	if limit := s[plan.ScalarMaxNorm]; limit > 0 {
		clip = min(1, limit/(norm+1e-6))
	}
	if !finite(norm) || !finite(mean) {
		// The factor stays finite, so that no reader can spread a NaN.
		s[plan.ScalarSkip], clip = 1, 0
	}
	s[plan.ScalarGradNorm], s[plan.ScalarClip] = norm, clip
	s[plan.ScalarLoss], s[plan.ScalarTokens] = mean, tokens
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
