package optim

import (
	"math"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/vec"
)

// AdamWArgs are the operands of an update of one slab: Weight, Grad, M and V are Elems f32
// each, Scalars is the step's block (plan.NumScalars f64). The first Decay elements have
// weight decay.
type AdamWArgs struct {
	Weight, Grad, M, V, Scalars device.Ptr
	Elems, Decay                int64
	Beta1, Beta2, Eps           float64
	WeightDecay                 float64
	Half                        bool // Grad is bf16, on the CPU; an even number of Elems
}

// AdamW launches one step of AdamW (Loshchilov and Hutter, arXiv 1711.05101, algorithm 2 with
// the decay scaled by the learning rate, as torch.optim.AdamW does):
//
//	g = clip * Grad
//	M = beta1 M + (1 - beta1) g        V = beta2 V + (1 - beta2) g^2
//	Weight = (1 - lr decay) Weight - lr / (1 - beta1^t) * M / (sqrt(V / (1 - beta2^t)) + eps)
//
// with lr, t and clip from the scalars. When the skip flag is set nothing changes.
func AdamW(q device.Queue, a AdamWArgs) {
	var args device.Args
	args.P = [device.MaxPtrs]device.Ptr{a.Weight, a.Grad, a.M, a.V, a.Scalars}
	args.I = [device.MaxInts]int64{a.Elems, a.Decay,
		bits(a.Beta1), bits(a.Beta2), bits(a.Eps), bits(a.WeightDecay), flag(a.Half)}
	q.Launch(&adamwKernel, args)
}

var adamwKernel = device.Kernel{Name: "optim.AdamW", CPU: adamwCPU, CUDA: adamwCUDA}

// bits carries a float64 in an integer argument: 1 - beta2 formed from a float32 beta2 = 0.999
// would be off by 5e-5.
func bits(x float64) int64     { return int64(math.Float64bits(x)) }
func fromBits(n int64) float64 { return math.Float64frombits(uint64(n)) }

// adamwGrain is the elements of one share of an update: 256 KiB over the four arrays.
const adamwGrain = 1 << 14

func adamwCPU(c device.CPU, a *device.Args) {
	s := c.F64(a.P[4], plan.NumScalars)
	if s[plan.ScalarSkip] != 0 {
		return
	}
	n, decay := a.I[0], a.I[1]
	k, decayed := adamwCoefs(s, a)
	w, m, v := c.F32(a.P[0], n), c.F32(a.P[2], n), c.F32(a.P[3], n)
	grad := gradientOf(c, a.P[1], n, a.I[6] != 0)
	c.Parallel(n, adamwGrain, func(lo, hi int64) {
		d := max(lo, min(hi, decay))
		grad.each(lo, d, func(lo, hi int64, g []float32) { vec.AdamWStep(w[lo:hi], g, m[lo:hi], v[lo:hi], &decayed) })
		grad.each(d, hi, func(lo, hi int64, g []float32) { vec.AdamWStep(w[lo:hi], g, m[lo:hi], v[lo:hi], &k) })
	})
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// adamwCoefs works out the step's numbers, without and with weight decay.
func adamwCoefs(s []float64, a *device.Args) (k, decayed vec.AdamW) {
	beta1, beta2, eps, wd := fromBits(a.I[2]), fromBits(a.I[3]), fromBits(a.I[4]), fromBits(a.I[5])
	lr, t := s[plan.ScalarLR], s[plan.ScalarStep]
	k = vec.AdamW{
		Clip:  1,
		Beta1: float32(beta1), OneMinus1: float32(1 - beta1),
		Beta2: float32(beta2), OneMinus2: float32(1 - beta2),
		Decay:        1,
		Step:         float32(lr / (1 - power(beta1, t))),
		InvSqrtBias2: float32(1 / math.Sqrt(1-power(beta2, t))),
		Eps:          float32(eps),
	}
	// Without clipping an update may run before Reduce has written the factor.
	if s[plan.ScalarMaxNorm] > 0 {
		k.Clip = float32(s[plan.ScalarClip])
	}
	decayed = k
	decayed.Decay = float32(1 - float64(lr*wd)) // rounded twice, as on a GPU
	return k, decayed
}

// power is b^t for a whole t, by the multiplications that optim.cu does too: two libraries'
// pow differ in the last bit, and a streamed run would then differ from a resident one.
func power(b, t float64) float64 {
	r := 1.0
	for n := uint64(t); n > 0; n >>= 1 {
		if n&1 != 0 {
			r = float64(r * b)
		}
		b = float64(b * b)
	}
	return r
}
