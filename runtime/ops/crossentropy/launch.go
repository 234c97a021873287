package crossentropy

import "github.com/megatrain/mtc/runtime/device"

// EvalArgs are the arguments of Eval.
type EvalArgs struct {
	Logits   device.Ptr // [Rows, V]
	Targets  device.Ptr // i32 [Rows]
	Partials device.Ptr // two float64
	Rows, V  int
	Pitch    int     // elements from one row of logits to the next; 0: V
	Cap      float32 // logits are Cap * tanh(x / Cap) of what is given; 0: as they are
}

var eval = device.Kernel{Name: "crossentropy.eval", CPU: evalCPU, CUDA: evalCUDA}

// Eval adds the sum of the losses and the number of targets to Partials.
func Eval(q device.Queue, a EvalArgs) {
	q.Launch(&eval, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.Logits, a.Targets, a.Partials},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.V), pitch(a.Pitch, a.V)},
		F: [device.MaxFloats]float32{a.Cap},
	})
}

// LossArgs are the arguments of Loss.
type LossArgs struct {
	Logits   device.Ptr // [Rows, V]
	Targets  device.Ptr // i32 [Rows]
	Scalars  device.Ptr // the step's scalars, plan.NumScalars float64
	DLogits  device.Ptr // [Rows, V], may be Logits
	Partials device.Ptr // two float64
	Rows, V  int
	Pitch    int     // elements from one row of logits to the next; 0: V
	Cap      float32 // logits are Cap * tanh(x / Cap) of what is given; 0: as they are
}

var loss = device.Kernel{Name: "crossentropy.loss", CPU: lossCPU, CUDA: lossCUDA}

// Loss does what Eval does and sets
// DLogits = (softmax(Logits) - onehot(Targets)) * Scalars[plan.ScalarInvTokens], with a Cap as the gradient
// of what is given.
func Loss(q device.Queue, a LossArgs) {
	q.Launch(&loss, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.Logits, a.Targets, a.Partials, a.Scalars, a.DLogits},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.V), pitch(a.Pitch, a.V)},
		F: [device.MaxFloats]float32{a.Cap},
	})
}

func pitch(given, v int) int64 {
	if given > 0 {
		return int64(given)
	}
	return int64(v)
}
