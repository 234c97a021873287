package linear

import "github.com/megatrain/mtc/runtime/device"

// ForwardArgs are the arguments of Forward.
type ForwardArgs struct {
	X             device.Ptr // [Rows, In]
	Weight        device.Ptr // [Out, In]
	Bias          device.Ptr // [Out], may be nil
	AddY, Y       device.Ptr // [Rows, Out]; AddY may be nil
	Rows, In, Out int
	Pitch         int // elements from one row of Y, and of AddY, to the next; 0: Out
	Wide          int // of the rows of Weight, those behind Out being zeros for a device that is faster with more; 0: Out
}

var forward = device.Kernel{Name: "linear.forward", CPU: forwardCPU, Matmul: forwardMatmul}

// Forward sets Y = AddY + X Weight^T + Bias.
func Forward(q device.Queue, a ForwardArgs) {
	q.Launch(&forward, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X, a.Weight, a.Bias, a.Y, a.AddY},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.In), int64(a.Out), pitch(a.Pitch, a.Out), pitch(a.Wide, a.Out)},
	})
}

// BackwardInputArgs are the arguments of BackwardInput.
type BackwardInputArgs struct {
	Weight        device.Ptr // [Out, In]
	DY            device.Ptr // [Rows, Out]
	AddDX, DX     device.Ptr // [Rows, In]
	Rows, In, Out int
	Pitch         int // of DY
	Wide          int // as in ForwardArgs; the columns of DY behind Out are zeros too
}

var backwardInput = device.Kernel{Name: "linear.backward_input", CPU: backwardInputCPU, Matmul: inputMatmul}

// BackwardInput sets DX = AddDX + DY Weight.
func BackwardInput(q device.Queue, a BackwardInputArgs) {
	q.Launch(&backwardInput, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.Weight, a.DY, a.AddDX, a.DX},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.In), int64(a.Out), pitch(a.Pitch, a.Out), pitch(a.Wide, a.Out)},
	})
}

// BackwardWeightArgs are the arguments of BackwardWeight.
type BackwardWeightArgs struct {
	X                   device.Ptr // [Rows, In]
	DY                  device.Ptr // [Rows, Out]
	AddDWeight, DWeight device.Ptr // [Out, In]
	Rows, In, Out       int
	Pitch               int // of DY
	Wide                int // as in BackwardInputArgs
}

var backwardWeight = device.Kernel{Name: "linear.backward_weight", CPU: backwardWeightCPU, Matmul: weightMatmul}

// BackwardWeight sets DWeight = AddDWeight + DY^T X.
func BackwardWeight(q device.Queue, a BackwardWeightArgs) {
	q.Launch(&backwardWeight, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X, a.DY, a.AddDWeight, a.DWeight},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.In), int64(a.Out), pitch(a.Pitch, a.Out), pitch(a.Wide, a.Out)},
	})
}

// BackwardBiasArgs are the arguments of BackwardBias.
type BackwardBiasArgs struct {
	DY              device.Ptr // [Rows, Out]
	AddDBias, DBias device.Ptr // [Out]
	Rows, In, Out   int
	Pitch           int // of DY
	Wide            int // unused
}

var backwardBias = device.Kernel{Name: "linear.backward_bias", CPU: backwardBiasCPU, CUDA: biasCUDA}

// BackwardBias sets DBias = AddDBias + the sum of the rows of DY.
func BackwardBias(q device.Queue, a BackwardBiasArgs) {
	q.Launch(&backwardBias, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.DY, a.AddDBias, a.DBias},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.In), int64(a.Out), pitch(a.Pitch, a.Out), pitch(a.Wide, a.Out)},
	})
}

// pitch is what kernels get: the elements from one row of y to the next, and likewise the rows of the
// weight.
func pitch(given, out int) int64 {
	if given > 0 {
		return int64(given)
	}
	return int64(out)
}
