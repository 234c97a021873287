package silu

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/inuse"
)

// ForwardArgs are the arguments of Forward.
type ForwardArgs struct {
	X, Y    device.Ptr // [Rows, D]
	Rows, D int

	Routing        device.Ptr // of the rows of experts, of which those in use are computed; nil: all rows
	Experts, Slots int
}

var forward = device.Kernel{Name: "silu.forward", CPU: forwardCPU, CUDA: forwardCUDA}

// Forward sets Y = silu(X).
func Forward(q device.Queue, a ForwardArgs) {
	q.Launch(&forward, inuse.Args(device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X, a.Y},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)},
	}, a.Routing, a.Experts, a.Slots))
}

// BackwardArgs are the arguments of Backward.
type BackwardArgs struct {
	X, DY     device.Ptr // [Rows, D]
	AddDX, DX device.Ptr // [Rows, D]
	Rows, D   int

	Routing        device.Ptr // of the rows of experts, of which those in use are computed; nil: all rows
	Experts, Slots int
}

var backward = device.Kernel{Name: "silu.backward", CPU: backwardCPU, CUDA: backwardCUDA}

// Backward sets DX = AddDX + DY * silu'(X).
func Backward(q device.Queue, a BackwardArgs) {
	q.Launch(&backward, inuse.Args(device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X, a.DY, a.AddDX, a.DX},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)},
	}, a.Routing, a.Experts, a.Slots))
}
