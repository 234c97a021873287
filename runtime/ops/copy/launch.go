package copy

import "github.com/megatrain/mtc/runtime/device"

// ForwardArgs are the arguments of Forward.
type ForwardArgs struct {
	X, Y    device.Ptr // [Rows, D]
	Rows, D int
}

var forward = device.Kernel{Name: "copy.forward", CPU: forwardCPU, CUDA: forwardCUDA}

// Forward sets Y = X.
func Forward(q device.Queue, a ForwardArgs) {
	q.Launch(&forward, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X, a.Y},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)},
	})
}
