// Package layernorm is the room of layer normalisation:
//
//	mean[b,t]  = mean over d of x
//	inv[b,t]   = 1 / sqrt(mean over d of (x - mean)^2 + eps)
//	y[b,t,d]   = (x - mean) * inv * weight[d] + bias[d]       x, y [B, T, D], weight, bias [D]
//	dx[b,t,d]  = inv * (g - mean(g) - xhat * mean(g * xhat)),  g = dy * weight,  xhat = (x - mean) * inv
//	dweight[d] = sum over b, t of dy * xhat
//	dbias[d]   = sum over b, t of dy
//
// mean and inv are saved, one f32 each for a row. Without weight or bias they are taken as
// 1 and 0. Source: Ba, Kiros and Hinton, arXiv 1607.06450.
package layernorm

import (
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Def declares layernorm.
var Def = &op.Def{
	Name:    "layernorm",
	Doc:     "gives each row mean 0 and variance 1, times a weight, plus a bias",
	Formula: "y[b,t,d] = (x[b,t,d] - mean_d(x)) / sqrt(var_d(x) + eps) * weight[d] + bias[d]",
	Example: "h = norm: layernorm(x)",
	Params: []op.Param{
		{Name: "x", Kind: op.Tensor, Doc: "[B, T, D]"},
		{Name: "eps", Kind: op.Float, Default: op.FloatValue(1e-5), Doc: "added to the variance"},
		{Name: "weight", Kind: op.Bool, Default: op.BoolValue(true), Doc: "owns a weight that starts at 1"},
		{Name: "bias", Kind: op.Bool, Default: op.BoolValue(true), Doc: "owns a bias that starts at 0"},
	},
	Infer:   infer,
	RowWise: true,
	Forward: op.WithCost(op.Launch{
		Func: "Forward", Reads: []string{"x", "weight", "bias"}, Writes: []string{"y", "mean", "inv"},
		InPlace: [][2]string{{"x", "y"}},
	}, op.PerElement(8)),
	Backward: []op.Launch{op.WithCost(op.Launch{
		Func: "Backward", Reads: []string{"x", "weight", "mean", "inv", "d.y"},
		Writes: []string{"d.x", "d.weight", "d.bias"}, Adds: []string{"d.x", "d.weight", "d.bias"},
		InPlace: [][2]string{{"x", "d.x"}, {"d.y", "d.x"}},
	}, backwardFLOPs)},
}

func backwardFLOPs(c *op.Call, s op.Sizes) int64 {
	n := int64(11)
	if c.Bool("weight") {
		n += 4
	}
	if c.Bool("bias") {
		n++
	}
	return n * s.Elems(c.Out.Shape)
}

func infer(c *op.Call) error {
	if err := op.Elementwise(c); err != nil {
		return err
	}
	if err := c.PositiveFloat("eps"); err != nil {
		return err
	}
	row := tensor.Type{DType: tensor.F32, Shape: c.Out.Shape[:2:2]}
	c.Saved = []op.Operand{{Name: "mean", Type: row}, {Name: "inv", Type: row}}
	last := c.Out.Shape.Last()
	if c.Bool("weight") {
		c.Weights = append(c.Weights, op.Weight{Name: "weight", Shape: tensor.Shape{last}, Role: op.Norm})
	}
	if c.Bool("bias") {
		c.Weights = append(c.Weights, op.Weight{Name: "bias", Shape: tensor.Shape{last}, Role: op.Bias})
	}
	c.Consts = append(c.Consts, op.FloatConst("Eps", c.Float("eps")))
	return nil
}
