package add

import "github.com/megatrain/mtc/runtime/device"

// ForwardArgs are the arguments of Forward.
type ForwardArgs struct {
	A, B, Y device.Ptr // [Rows, D]
	Rows, D int
}

var forward = device.Kernel{Name: "add.forward", CPU: forwardCPU, CUDA: forwardCUDA}

// Forward sets Y = A + B.
func Forward(q device.Queue, a ForwardArgs) {
	q.Launch(&forward, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.A, a.B, a.Y},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)},
	})
}
