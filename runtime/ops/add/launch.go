package add

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

var forward = device.Kernel{Name: "add.forward", CPU: forwardCPU, CUDA: forwardCUDA}

// Forward sets Y = A + B.
func Forward(q device.Queue, a ForwardArgs) {
	q.Launch(&forward, inuse.Args(device.Args{
		P: [device.MaxPtrs]device.Ptr{a.A, a.B, a.Y},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)},
	}, a.Routing, a.Experts, a.Slots))
}
