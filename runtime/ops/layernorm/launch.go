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

// BackwardArgs are the arguments of Backward.
type BackwardArgs struct {
	X, DY               device.Ptr // [Rows, D]
	Weight              device.Ptr // [D], may be nil
	Mean, Inv           device.Ptr // [Rows]
	AddDX, DX           device.Ptr // [Rows, D]
	AddDWeight, DWeight device.Ptr // [D], nil without a weight
	AddDBias, DBias     device.Ptr // [D], nil without a bias
	Rows, D             int
	Eps                 float32
}

var backward = device.Kernel{Name: "layernorm.backward", CPU: backwardCPU, CUDA: backwardCUDA}

// Backward sets DX = AddDX + Inv * (G - mean(G) - Xhat * mean(G * Xhat)), with G = DY * Weight and
// Xhat = (X - Mean) * Inv, DWeight = AddDWeight + the sum over rows of DY * Xhat, and DBias =
// AddDBias + the sum of the rows of DY.
func Backward(q device.Queue, a BackwardArgs) {
	q.Launch(&backward, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X, a.Weight, a.Mean, a.Inv, a.DY, a.AddDX, a.DX, a.AddDWeight, a.DWeight, a.AddDBias, a.DBias},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.D)},
	})
}
