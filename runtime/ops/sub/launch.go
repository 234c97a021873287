package sub

import "github.com/megatrain/mtc/runtime/device"

// ForwardArgs are the arguments of Forward.
type ForwardArgs struct {
	A, B, Y device.Ptr // [Rows, D]
	Rows, D int
}

var forward = device.Kernel{Name: "sub.forward", CPU: forwardCPU, CUDA: forwardCUDA}

// Forward sets Y = A - B.
func Forward(q device.Queue, a ForwardArgs) {
	q.Launch(&forward, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.A, a.B, a.Y},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)},
	})
}

// BackwardAArgs are the arguments of BackwardA.
type BackwardAArgs struct {
	DY        device.Ptr // [Rows, D]
	AddDA, DA device.Ptr // [Rows, D]
	Rows, D   int
}

var backwardA = device.Kernel{Name: "sub.backward_a", CPU: backwardACPU, CUDA: backwardACUDA}

// BackwardA sets DA = AddDA + DY.
func BackwardA(q device.Queue, a BackwardAArgs) {
	q.Launch(&backwardA, device.Args{
		P: [device.MaxPtrs]device.Ptr{{}, a.DY, a.AddDA, a.DA},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)},
	})
}

// BackwardBArgs are the arguments of BackwardB.
type BackwardBArgs struct {
	DY        device.Ptr // [Rows, D]
	AddDB, DB device.Ptr // [Rows, D]
	Rows, D   int
}

var backwardB = device.Kernel{Name: "sub.backward_b", CPU: backwardBCPU, CUDA: backwardBCUDA}

// BackwardB sets DB = AddDB - DY.
func BackwardB(q device.Queue, a BackwardBArgs) {
	q.Launch(&backwardB, device.Args{
		P: [device.MaxPtrs]device.Ptr{{}, a.DY, a.AddDB, a.DB},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)},
	})
}
