// Package rmsnorm is the room of root-mean-square normalisation:
//
//	inv[b,t,g]  = 1 / sqrt(mean over the group of x^2 + eps)
//	y[b,t,d]    = x * inv * weight[d']                    x, y [B, T, D], weight [D] or [hd]
//	dx[b,t,d]   = inv * (dy * weight - x * inv^2 * mean over the group of dy * weight * x)
//	dweight[d'] = sum over b, t (and groups) of dy * x * inv
//
// A group is the whole row, or hd elements of it with `per = hd` (each head by itself; all
// heads share weight [hd]). inv is saved: one f32 for each row or group. Without a weight
// it is taken as 1. Source: Zhang and Sennrich, arXiv 1910.07467.
package rmsnorm

import (
	"fmt"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Def declares rmsnorm.
var Def = &op.Def{
	Name:    "rmsnorm",
	Doc:     "divides rows (or heads) by their root mean square, times a weight",
	Formula: "y[b,t,d] = x[b,t,d] / sqrt(mean_d(x^2) + eps) * weight[d]",
	Example: "h = norm: rmsnorm(x)",
	Params: []op.Param{
		{Name: "x", Kind: op.Tensor, Doc: "[B, T, D]"},
		{Name: "eps", Kind: op.Float, Default: op.FloatValue(1e-6), Doc: "added to the mean square"},
		{Name: "per", Kind: op.Int, Default: op.None(), Doc: "normalise groups of this many elements (a head); none: the row"},
		{Name: "weight", Kind: op.Bool, Default: op.BoolValue(true), Doc: "owns a weight that starts at 1"},
	},
	Infer:   infer,
	RowWise: true,
	Forward: op.WithCost(op.Launch{
		Func: "Forward", Reads: []string{"x", "weight"}, Writes: []string{"y", "inv"},
		InPlace: [][2]string{{"x", "y"}},
	}, op.PerElement(4)),
	Backward: []op.Launch{op.WithCost(op.Launch{
		Func: "Backward", Reads: []string{"x", "weight", "inv", "d.y"},
		Writes: []string{"d.x", "d.weight"}, Adds: []string{"d.x", "d.weight"},
		InPlace: [][2]string{{"x", "d.x"}, {"d.y", "d.x"}},
	}, backwardFLOPs)},
}

func backwardFLOPs(c *op.Call, s op.Sizes) int64 {
	n := int64(9)
	if c.Bool("weight") {
		n += 3
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
	last := c.Out.Shape.Last()
	group, groups := last, int64(1)
	if c.Has("per") {
		if err := c.Positive("per"); err != nil {
			return err
		}
		group = c.DimOf("per")
		if last.N%group.N != 0 {
			return &op.ArgError{Arg: "per", Want: fmt.Sprintf("a divisor of the last dim of %s", c.Out), Got: group.String()}
		}
		groups = last.N / group.N
	}
	c.Saved = []op.Operand{{Name: "inv", Type: tensor.Type{DType: tensor.F32, Shape: c.Out.Shape.WithLast(tensor.Dim{N: groups})}}}
	if c.Bool("weight") {
		c.Weights = []op.Weight{{Name: "weight", Shape: tensor.Shape{group}, Role: op.Norm}}
	}
	c.Consts = append(c.Consts, op.IntConst("Per", group.N), op.FloatConst("Eps", c.Float("eps")))
	return nil
}
