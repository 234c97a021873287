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

// BackwardArgs are the arguments of Backward.
type BackwardArgs struct {
	X, DY               device.Ptr // [Rows, D]
	Weight              device.Ptr // [Per], may be nil
	Inv                 device.Ptr // [Rows, D/Per]
	AddDX, DX           device.Ptr // [Rows, D]
	AddDWeight, DWeight device.Ptr // [Per], nil without a weight
	Rows, D             int
	Per                 int
	Eps                 float32
}

var backward = device.Kernel{Name: "rmsnorm.backward", CPU: backwardCPU, CUDA: backwardCUDA}

// Backward sets DX = AddDX + Inv * (G - Xhat * mean(G * Xhat)), with G = DY * Weight and
// Xhat = X * Inv, and DWeight = AddDWeight + the sum over rows and groups of DY * Xhat.
func Backward(q device.Queue, a BackwardArgs) {
	q.Launch(&backward, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X, a.Weight, a.Inv, a.DY, a.AddDX, a.DX, a.AddDWeight, a.DWeight},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D), int64(a.Per)},
	})
}
