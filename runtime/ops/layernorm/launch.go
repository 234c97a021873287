package layernorm

import "github.com/megatrain/mtc/runtime/device"

// ForwardArgs are the arguments of Forward.
type ForwardArgs struct {
	X, Y         device.Ptr // [Rows, D]
	Weight, Bias device.Ptr // [D], may be nil
	Mean, Inv    device.Ptr // [Rows]
	Rows, D      int
	Eps          float32
}

var forward = device.Kernel{Name: "layernorm.forward", CPU: forwardCPU, CUDA: forwardCUDA}

// Forward sets Mean, Inv = 1 / sqrt(var(X) + Eps) for each row, and
// Y = (X - Mean) * Inv * Weight + Bias.
func Forward(q device.Queue, a ForwardArgs) {
	q.Launch(&forward, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X, a.Weight, a.Bias, a.Y, a.Mean, a.Inv},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)},
		F: [device.MaxFloats]float32{a.Eps},
	})
}

// BackwardInputArgs are the arguments of BackwardInput.
type BackwardInputArgs struct {
	X, DY     device.Ptr // [Rows, D]
	Weight    device.Ptr // [D], may be nil
	Mean, Inv device.Ptr // [Rows]
	AddDX, DX device.Ptr // [Rows, D]
	Rows, D   int
	Eps       float32
}

var backwardInput = device.Kernel{Name: "layernorm.backward_input", CPU: backwardInputCPU, CUDA: backwardInputCUDA}

// BackwardInput sets DX = AddDX + Inv * (G - mean(G) - Xhat * mean(G * Xhat)), with
// G = DY * Weight and Xhat = (X - Mean) * Inv.
func BackwardInput(q device.Queue, a BackwardInputArgs) {
	q.Launch(&backwardInput, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X, a.Weight, a.Mean, a.Inv, a.DY, a.AddDX, a.DX},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)},
	})
}

// BackwardWeightArgs are the arguments of BackwardWeight.
type BackwardWeightArgs struct {
	X, DY               device.Ptr // [Rows, D]
	Mean, Inv           device.Ptr // [Rows]
	AddDWeight, DWeight device.Ptr // [D]
	Rows, D             int
	Eps                 float32
}

var backwardWeight = device.Kernel{Name: "layernorm.backward_weight", CPU: backwardWeightCPU, CUDA: backwardWeightCUDA}

// BackwardWeight sets DWeight = AddDWeight + the sum over rows of DY * Xhat.
func BackwardWeight(q device.Queue, a BackwardWeightArgs) {
	q.Launch(&backwardWeight, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X, a.Mean, a.Inv, a.DY, a.AddDWeight, a.DWeight},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)},
	})
}

// BackwardBiasArgs are the arguments of BackwardBias.
type BackwardBiasArgs struct {
	DY              device.Ptr // [Rows, D]
	AddDBias, DBias device.Ptr // [D]
	Rows, D         int
	Eps             float32
}

var backwardBias = device.Kernel{Name: "layernorm.backward_bias", CPU: backwardBiasCPU, CUDA: backwardBiasCUDA}

// BackwardBias sets DBias = AddDBias + the sum of the rows of DY.
func BackwardBias(q device.Queue, a BackwardBiasArgs) {
	q.Launch(&backwardBias, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.DY, a.AddDBias, a.DBias},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)},
	})
}
