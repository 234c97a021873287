// Package fill is the room of the fill that the compiler inserts to clear partial sums and
// alignment gaps:
//
//	y[i] = value                   y [N]
//
// N counts f32 elements; a float64 is cleared as two of them. It has no gradient.
package fill

import (
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Def declares fill.
var Def = &op.Def{
	Name:    "fill",
	Doc:     "sets every element to a constant",
	Formula: "y[i] = value",
	Hidden:  true,
	Params: []op.Param{
		{Name: "n", Kind: op.Int, Doc: "number of f32 elements"},
		{Name: "value", Kind: op.Float, Default: op.FloatValue(0), Doc: "what to set them to"},
	},
	Infer: infer,
	Forward: op.WithCost(op.Launch{
		Func: "Forward", Writes: []string{"y"},
	}, func(*op.Call, op.Sizes) int64 { return 0 }),
}

func infer(c *op.Call) error {
	if err := c.Positive("n"); err != nil {
		return err
	}
	c.Out = tensor.Type{DType: tensor.F32, Shape: tensor.Shape{c.DimOf("n")}}
	c.Consts = []op.Const{op.IntConst("N", c.Int("n")), op.FloatConst("Value", c.Float("value"))}
	return nil
}
