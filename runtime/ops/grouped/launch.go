package grouped

import "github.com/megatrain/mtc/runtime/device"

// ForwardArgs are the arguments of Forward.
type ForwardArgs struct {
	X                             device.Ptr // [Rows * Slots, In]
	Weight                        device.Ptr // [Experts, Out, In]
	Routing                       device.Ptr // of moe.Select, for Rows tokens
	Bias                          device.Ptr // [Experts, Out], nil: none
	Y                             device.Ptr // [Rows * Slots, Out]: rows in use set
	Rows, In, Out, Experts, Slots int
}

var forward = device.Kernel{Name: "grouped.forward", CPU: forwardCPU, CUDA: forwardCUDA}

// Forward sets Y = X Weight[e]^T + Bias[e] for the rows of each expert.
func Forward(q device.Queue, a ForwardArgs) {
	q.Launch(&forward, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X, a.Weight, a.Routing, a.Y, a.Bias},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.In), int64(a.Out), int64(a.Experts), int64(a.Slots)},
	})
}

// BackwardInputArgs are the arguments of BackwardInput.
type BackwardInputArgs struct {
	Weight                        device.Ptr // [Experts, Out, In]
	Routing                       device.Ptr // of moe.Select
	DY                            device.Ptr // [Rows * Slots, Out]
	AddDX, DX                     device.Ptr // [Rows * Slots, In]: rows in use set
	Rows, In, Out, Experts, Slots int
}

var backwardInput = device.Kernel{Name: "grouped.backward_input", CPU: backwardInputCPU, CUDA: inputCUDA}

// BackwardInput sets DX = AddDX + DY Weight[e] for the rows of each expert.
func BackwardInput(q device.Queue, a BackwardInputArgs) {
	q.Launch(&backwardInput, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.Weight, a.Routing, a.DY, a.AddDX, a.DX},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.In), int64(a.Out), int64(a.Experts), int64(a.Slots)},
	})
}

// BackwardWeightArgs are the arguments of BackwardWeight.
type BackwardWeightArgs struct {
	X                             device.Ptr // [Rows * Slots, In]
	Routing                       device.Ptr // of moe.Select
	DY                            device.Ptr // [Rows * Slots, Out]
	AddDWeight, DWeight           device.Ptr // f32 [Experts, Out, In]; AddDWeight may be nil or DWeight
	Rows, In, Out, Experts, Slots int
}

var backwardWeight = device.Kernel{Name: "grouped.backward_weight", CPU: backwardWeightCPU, CUDA: weightCUDA}

// BackwardWeight sets DWeight[e] = AddDWeight[e] + DY^T X over the rows of each expert.
func BackwardWeight(q device.Queue, a BackwardWeightArgs) {
	q.Launch(&backwardWeight, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X, a.Routing, a.DY, a.AddDWeight, a.DWeight},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.In), int64(a.Out), int64(a.Experts), int64(a.Slots)},
	})
}

// BackwardBiasArgs are the arguments of BackwardBias.
type BackwardBiasArgs struct {
	Routing                       device.Ptr // of moe.Select
	DY                            device.Ptr // [Rows * Slots, Out]
	AddDBias, DBias               device.Ptr // f32 [Experts, Out]; AddDBias may be nil or DBias
	Rows, In, Out, Experts, Slots int
}

var backwardBias = device.Kernel{Name: "grouped.backward_bias", CPU: backwardBiasCPU, CUDA: biasCUDA}

// BackwardBias sets DBias[e] = AddDBias[e] + the sum of DY over the rows of each expert.
func BackwardBias(q device.Queue, a BackwardBiasArgs) {
	q.Launch(&backwardBias, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.Routing, a.DY, a.AddDBias, a.DBias},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.In), int64(a.Out), int64(a.Experts), int64(a.Slots)},
	})
}
