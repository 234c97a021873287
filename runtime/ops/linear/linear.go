// Package linear is the room of the projection:
//
//	y[b,t,o]     = sum over i of x[b,t,i] * weight[o,i] + bias[o]   x [B, T, I], weight [O, I], bias [O], y [B, T, O]
//	dx[b,t,i]    = sum over o of dy[b,t,o] * weight[o,i]
//	dweight[o,i] = sum over b, t of dy[b,t,o] * x[b,t,i]
//	dbias[o]     = sum over b, t of dy[b,t,o]
//
// The three gradients are launches of their own: each reads only what it needs. Weights are
// [out, in], row-major, as PyTorch and Hugging Face keep them. Rows of y may lie further apart
// than it is wide (Pitch). Forward takes an addend too, into which the compiler turns a residual. With `tie` the weight is
// another one's tensor; it has the same shape.
package linear

import (
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Def declares linear.
var Def = &op.Def{
	Name:    "linear",
	Doc:     "a matrix times the last dim, with an optional bias",
	Formula: "y[b,t,o] = sum_i x[b,t,i] * weight[o,i] + bias[o]",
	Example: "x = proj: linear(x, D)",
	Params: []op.Param{
		{Name: "x", Kind: op.Tensor, Doc: "[B, T, I]"},
		{Name: "out", Kind: op.Int, Doc: "O, the width of the result"},
		{Name: "bias", Kind: op.Bool, Default: op.BoolValue(false), Doc: "adds a bias of O elements, which starts at 0"},
		{Name: "tie", Kind: op.TieKind, Default: op.None(), Doc: "label of the weight to share, or none"},
		{Name: "init", Kind: op.InitKind, Default: op.None(), Doc: "how the weight starts; none: the model's init"},
	},
	Infer:   infer,
	Fused:   fused,
	RowWise: true,
	Pitched: true,
	Forward: op.WithCost(op.Launch{
		Func: "Forward", Reads: []string{"x", "weight", "bias"}, Writes: []string{"y"}, Adds: []string{"y"}, Shape: forwardShape,
	}, forwardFLOPs),
	Backward: []op.Launch{
		op.WithCost(op.Launch{
			Func: "BackwardInput", Reads: []string{"weight", "d.y"}, Writes: []string{"d.x"}, Adds: []string{"d.x"}, Shape: inputShape,
		}, gemmFLOPs),
		op.WithCost(op.Launch{
			Func: "BackwardWeight", Reads: []string{"x", "d.y"}, Writes: []string{"d.weight"}, Adds: []string{"d.weight"}, Shape: weightShape,
		}, gemmFLOPs),
		op.WithCost(op.Launch{
			Func: "BackwardBias", Reads: []string{"d.y"}, Writes: []string{"d.bias"}, Adds: []string{"d.bias"},
		}, outElems),
	},
}

func infer(c *op.Call) error {
	x, err := c.Activation("x")
	if err != nil {
		return err
	}
	if err := c.Positive("out"); err != nil {
		return err
	}
	in, out := x.Shape.Last(), c.DimOf("out")
	if err := op.Fits("out", out.N, in.N); err != nil {
		return err
	}
	c.Out = tensor.Type{DType: x.DType, Shape: x.Shape.WithLast(out)}
	c.Weights = []op.Weight{{Name: "weight", Shape: tensor.Shape{out, in}, Role: op.Matrix}}
	if c.Bool("bias") {
		c.Weights = append(c.Weights, op.Weight{Name: "bias", Shape: tensor.Shape{out}, Role: op.Bias})
	}
	c.Consts = []op.Const{op.RowsConst(), op.IntConst("In", in.N), op.IntConst("Out", out.N)}
	return nil
}

// The three products, as [M, K] by [K, N].

func forwardShape(c *op.Call, s op.Sizes) op.Shape {
	return op.Shape{Class: op.Product, Form: "nt", M: rows(c, s), N: c.Out.Shape.Last().N, K: c.In[0].Shape.Last().N, Count: 1}
}

func inputShape(c *op.Call, s op.Sizes) op.Shape {
	return op.Shape{Class: op.Product, Form: "nn", M: rows(c, s), N: c.In[0].Shape.Last().N, K: c.Out.Shape.Last().N, Count: 1}
}

func weightShape(c *op.Call, s op.Sizes) op.Shape {
	return op.Shape{Class: op.Product, Form: "tn", M: c.Out.Shape.Last().N, N: c.In[0].Shape.Last().N, K: rows(c, s), Count: 1}
}

func rows(c *op.Call, s op.Sizes) int64 { return s.Elems(c.Out.Shape) / c.Out.Shape.Last().N }

func gemmFLOPs(c *op.Call, s op.Sizes) int64 {
	return 2 * s.Elems(c.In[0].Shape) * c.Out.Shape.Last().N
}

func forwardFLOPs(c *op.Call, s op.Sizes) int64 {
	n := gemmFLOPs(c, s)
	if len(c.Weights) > 1 {
		n += outElems(c, s)
	}
	return n
}

func outElems(c *op.Call, s op.Sizes) int64 { return s.Elems(c.Out.Shape) }
