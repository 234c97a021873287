package rmsnorm

import "github.com/megatrain/mtc/runtime/device"

// ForwardArgs are the arguments of Forward.
type ForwardArgs struct {
	X, Y    device.Ptr // [Rows, D]
	Weight  device.Ptr // [Per], may be nil
	Inv     device.Ptr // [Rows, D/Per]
	Rows, D int
	Per     int // elements of a group: D, or those of a head
	Eps     float32
}

var forward = device.Kernel{Name: "rmsnorm.forward", CPU: forwardCPU, CUDA: forwardCUDA}

// Forward sets Inv = 1 / sqrt(mean(X^2) + Eps) for each group, and Y = X * Inv * Weight.
func Forward(q device.Queue, a ForwardArgs) {
	q.Launch(&forward, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X, a.Weight, a.Y, a.Inv},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D), int64(a.Per)},
		F: [device.MaxFloats]float32{a.Eps},
	})
}

// BackwardInputArgs are the arguments of BackwardInput.
type BackwardInputArgs struct {
	X, DY     device.Ptr // [Rows, D]
	Weight    device.Ptr // [Per], may be nil
	Inv       device.Ptr // [Rows, D/Per]
	AddDX, DX device.Ptr // [Rows, D]
	Rows, D   int
	Per       int
	Eps       float32
}

var backwardInput = device.Kernel{Name: "rmsnorm.backward_input", CPU: backwardInputCPU, CUDA: backwardInputCUDA}

// BackwardInput sets DX = AddDX + Inv * (G - Xhat * mean(G * Xhat)), with G = DY * Weight and
// Xhat = X * Inv.
func BackwardInput(q device.Queue, a BackwardInputArgs) {
	q.Launch(&backwardInput, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X, a.Weight, a.Inv, a.DY, a.AddDX, a.DX},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D), int64(a.Per)},
	})
}

// BackwardWeightArgs are the arguments of BackwardWeight.
type BackwardWeightArgs struct {
	X, DY               device.Ptr // [Rows, D]
	Inv                 device.Ptr // [Rows, D/Per]
	AddDWeight, DWeight device.Ptr // [Per]
	Rows, D             int
	Per                 int
	Eps                 float32
}

var backwardWeight = device.Kernel{Name: "rmsnorm.backward_weight", CPU: backwardWeightCPU, CUDA: backwardWeightCUDA}

// BackwardWeight sets DWeight = AddDWeight + the sum over rows and groups of DY * X * Inv.
func BackwardWeight(q device.Queue, a BackwardWeightArgs) {
	q.Launch(&backwardWeight, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X, a.Inv, a.DY, a.AddDWeight, a.DWeight},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D), int64(a.Per)},
	})
}
