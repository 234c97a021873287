package linear

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/gemm"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/internal/grid"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

// A projection with a GELU behind it (the tanh form), or with the gradient of one:
//
//	pre[b,t,o] = sum over i of x[b,t,i] * weight[o,i] + bias[o]        y = gelu(pre)
//	dx[b,t,i]  = gelu'(pre[b,t,i]) * sum over o of dy[b,t,o] * weight[o,i]
//
// In the second, weight is that of the projection behind the GELU, whose input had been gelu(pre).

// fused are the launches that the compiler puts in the place of two.
var fused = []op.Launch{
	{
		Func: "ForwardGelu", Reads: []string{"x", "weight", "bias"}, Writes: []string{"pre", "y"}, Shape: forwardShape,
		Cost: func(c *op.Call, s op.Sizes) op.Cost {
			return op.Cost{FLOPs: forwardFLOPs(c, s) + 8*outElems(c, s), Bytes: c.Moved(s, "x", "weight", "bias") + 2*c.Moved(s, "y")}
		},
	},
	{
		Func: "BackwardInputGelu", Reads: []string{"weight", "d.y", "pre"}, Writes: []string{"d.x"}, Shape: inputShape,
		Cost: func(c *op.Call, s op.Sizes) op.Cost {
			return op.Cost{FLOPs: gemmFLOPs(c, s) + 16*s.Elems(c.In[0].Shape), Bytes: c.Moved(s, "weight", "d.y") + 2*c.Moved(s, "x")}
		},
	},
}

// ForwardGeluArgs are the arguments of ForwardGelu.
type ForwardGeluArgs struct {
	X             device.Ptr // [Rows, In]
	Weight        device.Ptr // [Out, In]
	Bias          device.Ptr // [Out], may be nil
	Pre, Y        device.Ptr // [Rows, Out]; Pre may be nil
	Rows, In, Out int
}

var forwardGelu = device.Kernel{
	Name: "linear.forward_gelu", CPU: forwardGeluCPU,
	Matmul: func(a *device.Args) device.Matmul {
		return device.Matmul{
			M: a.I[0], N: a.I[2], K: a.I[1], A: a.P[0], B: a.P[1], TransB: true, Bias: a.P[2], D: a.P[3],
			Epilogue: device.Gelu, Aux: a.P[4],
			DA: device.ActDtype, DB: device.WeightDtype, DD: device.ActDtype,
		}
	},
	CUDA: &device.Source{
		Text: text, Func: "linear_gelu",
		Grid: func(a *device.Args) device.Grid { return grid.Elements(a.I[0] * a.I[2]) },
	},
}

// ForwardGelu sets Pre = X Weight^T + Bias and Y = gelu(Pre).
func ForwardGelu(q device.Queue, a ForwardGeluArgs) {
	q.Launch(&forwardGelu, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.X, a.Weight, a.Bias, a.Y, a.Pre},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.In), int64(a.Out)},
	})
}

// BackwardInputGeluArgs are the arguments of BackwardInputGelu.
type BackwardInputGeluArgs struct {
	Weight        device.Ptr // [Out, In]
	DY            device.Ptr // [Rows, Out]
	Pre, DX       device.Ptr // [Rows, In]
	Rows, In, Out int
}

var backwardInputGelu = device.Kernel{
	Name: "linear.backward_input_gelu", CPU: backwardInputGeluCPU,
	Matmul: func(a *device.Args) device.Matmul {
		return device.Matmul{
			M: a.I[0], N: a.I[1], K: a.I[2], A: a.P[1], B: a.P[0], D: a.P[3],
			Epilogue: device.GeluGrad, Aux: a.P[2],
			DA: device.ActDtype, DB: device.WeightDtype, DD: device.ActDtype,
		}
	},
	CUDA: &device.Source{
		Text: text, Func: "linear_gelu_grad",
		Grid: func(a *device.Args) device.Grid { return grid.Elements(a.I[0] * a.I[1]) },
	},
}

// BackwardInputGelu sets DX = (DY Weight) * gelu'(Pre).
func BackwardInputGelu(q device.Queue, a BackwardInputGeluArgs) {
	q.Launch(&backwardInputGelu, device.Args{
		P: [device.MaxPtrs]device.Ptr{a.Weight, a.DY, a.Pre, a.DX},
		I: [device.MaxInts]int64{int64(a.Rows), int64(a.In), int64(a.Out)},
	})
}

func forwardGeluCPU(c device.CPU, a *device.Args) {
	rows, in, out := a.I[0], a.I[1], a.I[2]
	x, weight, bias := c.F32(a.P[0], rows*in), c.F32(a.P[1], out*in), c.F32(a.P[2], out)
	y, pre := c.F32(a.P[3], rows*out), c.F32(a.P[4], rows*out)
	if pre == nil {
		pre = y
	}
	gemm.NT(c, int(rows), int(out), int(in), pre, x, weight, nil, bias)
	loops.Elements(c, rows*out, func(lo, hi int64) { vec.GeluTanh(y[lo:hi], pre[lo:hi]) })
}

func backwardInputGeluCPU(c device.CPU, a *device.Args) {
	rows, in, out := a.I[0], a.I[1], a.I[2]
	weight, dy := c.F32(a.P[0], out*in), c.F32(a.P[1], rows*out)
	pre, dx := c.F32(a.P[2], rows*in), c.F32(a.P[3], rows*in)
	gemm.NN(c, int(rows), int(in), int(out), dx, dy, weight, nil)
	loops.Elements(c, rows*in, func(lo, hi int64) { vec.GeluTanhBackward(dx[lo:hi], nil, dx[lo:hi], pre[lo:hi]) })
}
