package mul

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/inuse"
)

// ForwardArgs are the arguments of Forward.
type ForwardArgs struct {
	A, B, Y device.Ptr // [Rows, D]
	Rows, D int

	Routing        device.Ptr // of the rows of experts, of which those in use are computed; nil: all rows
	Experts, Slots int
}

var forward = device.Kernel{Name: "mul.forward", CPU: forwardCPU, CUDA: forwardCUDA}

// Forward sets Y = A * B.
func Forward(q device.Queue, a ForwardArgs) {
	q.Launch(&forward, inuse.Args(device.Args{
		P: [device.MaxPtrs]device.Ptr{a.A, a.B, a.Y},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)},
	}, a.Routing, a.Experts, a.Slots))
}

// BackwardAArgs are the arguments of BackwardA.
type BackwardAArgs struct {
	B, DY     device.Ptr // [Rows, D]
	AddDA, DA device.Ptr // [Rows, D]
	Rows, D   int

	Routing        device.Ptr // of the rows of experts, of which those in use are computed; nil: all rows
	Experts, Slots int
}

var backwardA = device.Kernel{Name: "mul.backward_a", CPU: backwardACPU, CUDA: backwardCUDA}

// BackwardA sets DA = AddDA + DY * B.
func BackwardA(q device.Queue, a BackwardAArgs) {
	q.Launch(&backwardA, inuse.Args(device.Args{
		P: [device.MaxPtrs]device.Ptr{a.B, a.DY, a.AddDA, a.DA},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)},
	}, a.Routing, a.Experts, a.Slots))
}

// BackwardBArgs are the arguments of BackwardB.
type BackwardBArgs struct {
	A, DY     device.Ptr // [Rows, D]
	AddDB, DB device.Ptr // [Rows, D]
	Rows, D   int

	Routing        device.Ptr // of the rows of experts, of which those in use are computed; nil: all rows
	Experts, Slots int
}

var backwardB = device.Kernel{Name: "mul.backward_b", CPU: backwardBCPU, CUDA: backwardCUDA}

// BackwardB sets DB = AddDB + DY * A.
func BackwardB(q device.Queue, a BackwardBArgs) {
	q.Launch(&backwardB, inuse.Args(device.Args{
		P: [device.MaxPtrs]device.Ptr{a.A, a.DY, a.AddDB, a.DB},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)},
	}, a.Routing, a.Experts, a.Slots))
}
