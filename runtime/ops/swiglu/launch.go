package swiglu

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/inuse"
)

// ForwardArgs are the arguments of Forward.
type ForwardArgs struct {
	Gate, UP, Y device.Ptr // [Rows, D]
	Rows, D     int

	Routing        device.Ptr // of the rows of experts, of which those in use are computed; nil: all rows
	Experts, Slots int
}

var forward = device.Kernel{Name: "swiglu.forward", CPU: forwardCPU, CUDA: forwardCUDA}

// Forward sets Y = silu(Gate) * UP.
func Forward(q device.Queue, a ForwardArgs) {
	q.Launch(&forward, inuse.Args(device.Args{
		P: [device.MaxPtrs]device.Ptr{a.Gate, a.UP, a.Y},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)},
	}, a.Routing, a.Experts, a.Slots))
}

// BackwardArgs are the arguments of Backward.
type BackwardArgs struct {
	Gate, UP, DY    device.Ptr // [Rows, D]
	AddDGate, DGate device.Ptr // [Rows, D]
	AddDUP, DUP     device.Ptr // [Rows, D]
	Rows, D         int

	Routing        device.Ptr // of the rows of experts, of which those in use are computed; nil: all rows
	Experts, Slots int
}

var backward = device.Kernel{Name: "swiglu.backward", CPU: backwardCPU, CUDA: backwardCUDA}

// Backward sets DGate = AddDGate + DY * UP * silu'(Gate) and DUP = AddDUP + DY * silu(Gate).
func Backward(q device.Queue, a BackwardArgs) {
	q.Launch(&backward, inuse.Args(device.Args{
		P: [device.MaxPtrs]device.Ptr{a.Gate, a.UP, a.DY, a.AddDGate, a.DGate, a.AddDUP, a.DUP},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)},
	}, a.Routing, a.Experts, a.Slots))
}
