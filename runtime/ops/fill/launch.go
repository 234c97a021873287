package fill

import "github.com/megatrain/mtc/runtime/device"

// ForwardArgs are the arguments of Forward.
type ForwardArgs struct {
	Y     device.Ptr // [N]
	N     int
	Value float32
}

var forward = device.Kernel{Name: "fill.forward", CPU: forwardCPU, CUDA: forwardCUDA}

// Forward sets every element of Y to Value.
func Forward(q device.Queue, a ForwardArgs) {
	q.Launch(&forward, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.Y},
		I: [device.MaxInts]int64{int64(a.N)},
		F: [device.MaxFloats]float32{a.Value},
	})
}
