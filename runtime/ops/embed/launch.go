package embed

import "github.com/megatrain/mtc/runtime/device"

// ForwardArgs are the arguments of Forward.
type ForwardArgs struct {
	Ids        device.Ptr // i32 [Rows]
	Weight     device.Ptr // [V, D]
	Y          device.Ptr // [Rows, D]
	Rows, V, D int
}

var forward = device.Kernel{Name: "embed.forward", CPU: forwardCPU, CUDA: forwardCUDA}

// Forward sets Y[r] = Weight[Ids[r]].
func Forward(q device.Queue, a ForwardArgs) {
	q.Launch(&forward, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.Ids, a.Weight, a.Y},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.V), int64(a.D)},
	})
}

// BackwardWeightArgs are the arguments of BackwardWeight.
type BackwardWeightArgs struct {
	Ids                 device.Ptr // i32 [Rows]
	DY                  device.Ptr // [Rows, D]
	AddDWeight, DWeight device.Ptr // [V, D]
	Rows, V, D          int
}

var backwardWeight = device.Kernel{Name: "embed.backward_weight", CPU: backwardWeightCPU, CUDA: backwardWeightCUDA}

// BackwardWeight sets DWeight[v] = AddDWeight[v] + the sum of DY[r] over the rows r with
// Ids[r] = v.
func BackwardWeight(q device.Queue, a BackwardWeightArgs) {
	q.Launch(&backwardWeight, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.Ids, a.DY, a.AddDWeight, a.DWeight},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.V), int64(a.D)},
	})
}
