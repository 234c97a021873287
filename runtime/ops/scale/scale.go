// Package scale is the room of the operator * between a tensor and a constant:
//
//	y[b,t,d]  = c * x              x, y [B, T, D]
//	dx[b,t,d] = c * dy
package scale

import (
	"math"

	"github.com/megatrain/mtc/runtime/op"
)

// Def declares scale, the operator * of a tensor and a constant.
var Def = &op.Def{
	Name:    "scale",
	Doc:     "a constant times x, elementwise",
	Formula: "y[b,t,d] = by * x[b,t,d]",
	Example: "x = 0.5 * x",
	Hidden:  true,
	Params: []op.Param{
		{Name: "x", Kind: op.Tensor, Doc: "[B, T, D]"},
		{Name: "by", Kind: op.Float, Doc: "the factor"},
	},
	Infer:   infer,
	RowWise: true,
	Ragged:  true,
	Forward: op.WithCost(op.Launch{
		Func: "Forward", Reads: []string{"x"}, Writes: []string{"y"},
		InPlace: [][2]string{{"x", "y"}},
	}, op.PerElement(1)),
	Backward: []op.Launch{op.WithCost(op.Launch{
		Func: "Backward", Reads: []string{"d.y"}, Writes: []string{"d.x"}, Adds: []string{"d.x"},
		InPlace: [][2]string{{"d.y", "d.x"}},
	}, op.PerElement(2))},
}

func infer(c *op.Call) error {
	if err := op.Elementwise(c); err != nil {
		return err
	}
	by := c.Float("by")
	if math.IsNaN(by) || math.Abs(by) > math.MaxFloat32 {
		return &op.ArgError{Arg: "by", Want: "a factor within the range of f32", Got: c.Attr["by"].String()}
	}
	c.Consts = append(c.Consts, op.FloatConst("By", by))
	return nil
}
