package grouped

import "github.com/megatrain/mtc/runtime/device"

// NormArgs are the arguments of Norm.
type NormArgs struct {
	X                            device.Ptr // [Rows * Slots, D]
	Weight                       device.Ptr // [Experts, Per], nil: ones
	Bias                         device.Ptr // [Experts, D], nil: none
	Routing                      device.Ptr // of moe.Select, for Rows tokens
	Y                            device.Ptr // [Rows * Slots, D]: rows in use set; may be X
	Center                       device.Ptr // f32 [Rows * Slots, D / Per], nil: the mean is not taken off
	Inv                          device.Ptr // f32 [Rows * Slots, D / Per]
	Rows, D, Per, Experts, Slots int
	Eps                          float32
}

var norm = device.Kernel{Name: "grouped.norm", CPU: normCPU, CUDA: normCUDA}

// Norm sets Y = (X - Center) * Inv * Weight[e] + Bias[e] for the rows of each expert, and Center and Inv.
func Norm(q device.Queue, a NormArgs) {
	q.Launch(&norm, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X, a.Weight, a.Routing, a.Center, a.Inv, a.Bias, a.Y},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D), int64(a.Experts), int64(a.Slots), int64(a.Per)},
		F: [device.MaxFloats]float32{a.Eps},
	})
}

// NormBackwardWeightArgs are the arguments of NormBackwardWeight.
type NormBackwardWeightArgs struct {
	X, DY                        device.Ptr // [Rows * Slots, D]
	Routing                      device.Ptr // of moe.Select
	Center, Inv                  device.Ptr // of Norm
	AddDWeight, DWeight          device.Ptr // f32 [Experts, Per], nil without a weight; AddDWeight may be nil or DWeight
	AddDBias, DBias              device.Ptr // f32 [Experts, D], likewise
	Rows, D, Per, Experts, Slots int
	Eps                          float32
}

var normBackwardWeight = device.Kernel{Name: "grouped.norm_backward_weight", CPU: normBackwardWeightCPU, CUDA: normWeightCUDA}

// NormBackwardWeight sets DWeight[e] = AddDWeight[e] + the sum over the rows of each expert, and their
// groups, of DY * Xhat, and DBias[e] = AddDBias[e] + that of DY.
func NormBackwardWeight(q device.Queue, a NormBackwardWeightArgs) {
	q.Launch(&normBackwardWeight, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X, {}, a.Routing, a.Center, a.Inv, a.DY, a.AddDWeight, a.DWeight, a.AddDBias, a.DBias},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D), int64(a.Experts), int64(a.Slots), int64(a.Per)},
	})
}

// NormBackwardInputArgs are the arguments of NormBackwardInput.
type NormBackwardInputArgs struct {
	X, DY                        device.Ptr // [Rows * Slots, D]
	Weight                       device.Ptr // [Experts, Per], nil: ones
	Routing                      device.Ptr // of moe.Select
	Center, Inv                  device.Ptr // of Norm
	AddDX, DX                    device.Ptr // [Rows * Slots, D]: rows in use set; may be X or DY
	Rows, D, Per, Experts, Slots int
	Eps                          float32
}

var normBackwardInput = device.Kernel{Name: "grouped.norm_backward_input", CPU: normBackwardInputCPU, CUDA: normInputCUDA}

// NormBackwardInput sets DX = AddDX + Inv * (G - mean(G) - Xhat * mean(G * Xhat)), with G = DY * Weight[e],
// for the rows of each expert; mean(G) only where Norm took a mean off.
func NormBackwardInput(q device.Queue, a NormBackwardInputArgs) {
	q.Launch(&normBackwardInput, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X, a.Weight, a.Routing, a.Center, a.Inv, a.DY, a.AddDX, a.DX},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D), int64(a.Experts), int64(a.Slots), int64(a.Per)},
	})
}
