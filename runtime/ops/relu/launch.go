package relu

import "github.com/megatrain/mtc/runtime/device"

// ForwardArgs are the arguments of Forward.
type ForwardArgs struct {
	X, Y    device.Ptr // [Rows, D]
	Rows, D int
}

var forward = device.Kernel{Name: "relu.forward", CPU: forwardCPU, CUDA: forwardCUDA}

// Forward sets Y = max(X, 0).
func Forward(q device.Queue, a ForwardArgs) {
	q.Launch(&forward, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X, a.Y},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)},
	})
}

// BackwardArgs are the arguments of Backward.
type BackwardArgs struct {
	Y, DY     device.Ptr // [Rows, D]
	AddDX, DX device.Ptr // [Rows, D]
	Rows, D   int
}

var backward = device.Kernel{Name: "relu.backward", CPU: backwardCPU, CUDA: backwardCUDA}

// Backward sets DX = AddDX + (DY where Y > 0).
func Backward(q device.Queue, a BackwardArgs) {
	q.Launch(&backward, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.Y, a.DY, a.AddDX, a.DX},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)},
	})
}
