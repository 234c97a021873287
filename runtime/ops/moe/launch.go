package moe

import "github.com/megatrain/mtc/runtime/device"

// LogitsArgs are the arguments of Logits.
type LogitsArgs struct {
	X                device.Ptr // [Rows, D]
	Weight           device.Ptr // [Experts, D]
	Y                device.Ptr // f32 [Rows, Experts]
	Rows, D, Experts int
}

var logits = device.Kernel{Name: "moe.logits", CPU: logitsCPU, CUDA: logitsCUDA}

// Logits sets Y = X Weight^T.
func Logits(q device.Queue, a LogitsArgs) {
	q.Launch(&logits, args([]device.Ptr{a.X, a.Weight, a.Y}, a.Rows, a.D, a.Experts))
}

// LogitsBackwardInputArgs are the arguments of LogitsBackwardInput.
type LogitsBackwardInputArgs struct {
	Weight           device.Ptr // [Experts, D]
	DY               device.Ptr // f32 [Rows, Experts]
	AddDX, DX        device.Ptr // [Rows, D]
	Rows, D, Experts int
}

var logitsBackwardInput = device.Kernel{Name: "moe.logits_backward_input", CPU: logitsBackwardInputCPU, CUDA: logitsInputCUDA}

// LogitsBackwardInput sets DX = AddDX + DY Weight.
func LogitsBackwardInput(q device.Queue, a LogitsBackwardInputArgs) {
	q.Launch(&logitsBackwardInput, args([]device.Ptr{a.Weight, a.DY, a.AddDX, a.DX}, a.Rows, a.D, a.Experts))
}

// LogitsBackwardWeightArgs are the arguments of LogitsBackwardWeight.
type LogitsBackwardWeightArgs struct {
	X                   device.Ptr // [Rows, D]
	DY                  device.Ptr // f32 [Rows, Experts]
	AddDWeight, DWeight device.Ptr // f32 [Experts, D]
	Rows, D, Experts    int
}

var logitsBackwardWeight = device.Kernel{Name: "moe.logits_backward_weight", CPU: logitsBackwardWeightCPU, CUDA: logitsWeightCUDA}

// LogitsBackwardWeight sets DWeight = AddDWeight + DY^T X.
func LogitsBackwardWeight(q device.Queue, a LogitsBackwardWeightArgs) {
	q.Launch(&logitsBackwardWeight, args([]device.Ptr{a.X, a.DY, a.AddDWeight, a.DWeight}, a.Rows, a.D, a.Experts))
}

// GatherArgs are the arguments of Gather.
type GatherArgs struct {
	X                       device.Ptr // [Rows, D]
	Routing                 device.Ptr // of Select
	Y                       device.Ptr // [Rows * Slots, D]: rows in use set
	Rows, D, Experts, Slots int
}

var gather = device.Kernel{Name: "moe.gather", CPU: gatherCPU, CUDA: gatherCUDA}

// Gather sets the rows in use of Y to those of their tokens.
func Gather(q device.Queue, a GatherArgs) {
	q.Launch(&gather, args([]device.Ptr{a.X, a.Routing, a.Y}, a.Rows, a.D, a.Experts, a.Slots))
}

// GatherBackwardArgs are the arguments of GatherBackward.
type GatherBackwardArgs struct {
	Routing                 device.Ptr // of Select
	DY                      device.Ptr // [Rows * Slots, D]
	AddDX, DX               device.Ptr // [Rows, D]
	Rows, D, Experts, Slots int
}

var gatherBackward = device.Kernel{Name: "moe.gather_backward", CPU: gatherBackwardCPU, CUDA: gatherBackwardCUDA}

// GatherBackward sets DX = AddDX + the sums over each token's rows.
func GatherBackward(q device.Queue, a GatherBackwardArgs) {
	q.Launch(&gatherBackward, args([]device.Ptr{a.Routing, a.DY, a.AddDX, a.DX}, a.Rows, a.D, a.Experts, a.Slots))
}

// CombineArgs are the arguments of Combine.
type CombineArgs struct {
	X                       device.Ptr // [Rows * Slots, D]
	Gates                   device.Ptr // f32 [Rows * Slots]
	Routing                 device.Ptr // of Select
	Y                       device.Ptr // [Rows, D]
	Rows, D, Experts, Slots int
}

var combine = device.Kernel{Name: "moe.combine", CPU: combineCPU, CUDA: combineCUDA}

// Combine sets Y to the gated sums over each token's rows.
func Combine(q device.Queue, a CombineArgs) {
	q.Launch(&combine, args([]device.Ptr{a.X, a.Gates, a.Routing, a.Y}, a.Rows, a.D, a.Experts, a.Slots))
}

// CombineBackwardArgs are the arguments of CombineBackward.
type CombineBackwardArgs struct {
	X                       device.Ptr // [Rows * Slots, D]
	Gates                   device.Ptr // f32 [Rows * Slots]
	Routing                 device.Ptr // of Select
	DY                      device.Ptr // [Rows, D]
	DX                      device.Ptr // [Rows * Slots, D]: rows in use set; may be X
	DGates                  device.Ptr // f32 [Rows * Slots]: rows in use set
	Rows, D, Experts, Slots int
}

var combineBackward = device.Kernel{Name: "moe.combine_backward", CPU: combineBackwardCPU, CUDA: combineBackwardCUDA}

// CombineBackward sets the gradients of the experts' rows and of the gates.
func CombineBackward(q device.Queue, a CombineBackwardArgs) {
	q.Launch(&combineBackward, args([]device.Ptr{a.X, a.Gates, a.Routing, a.DY, a.DX, a.DGates}, a.Rows, a.D, a.Experts, a.Slots))
}

func args(p []device.Ptr, n ...int) (a device.Args) {
	copy(a.P[:], p)
	for i, x := range n {
		a.I[i] = int64(x)
	}
	return a
}
