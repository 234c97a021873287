// Package softcap is the room of the soft cap, which keeps logits within (-cap, cap):
//
//	y[b,t,d]  = cap * tanh(x / cap)          x, y [B, T, D]
//	dx[b,t,d] = dy * (1 - (y / cap)^2)
//
// Backward reads y. Source: Gemma 2, arXiv 2408.00118, section 2.
package softcap

import "github.com/megatrain/mtc/runtime/op"

// Def declares softcap.
var Def = &op.Def{
	Name:    "softcap",
	Doc:     "cap * tanh(x / cap), elementwise",
	Formula: "y[b,t,d] = cap * tanh(x[b,t,d] / cap)",
	Example: "x = softcap(x, 15.0)",
	Params: []op.Param{
		{Name: "x", Kind: op.Tensor, Doc: "[B, T, D]"},
		{Name: "cap", Kind: op.Float, Doc: "the bound, above 0"},
	},
	Infer:   infer,
	RowWise: true,
	Ragged:  true,
	Forward: op.WithCost(op.Launch{
		Func: "Forward", Reads: []string{"x"}, Writes: []string{"y"},
		InPlace: [][2]string{{"x", "y"}},
	}, op.PerElement(3)),
	Backward: []op.Launch{op.WithCost(op.Launch{
		Func: "Backward", Reads: []string{"y", "d.y"}, Writes: []string{"d.x"}, Adds: []string{"d.x"},
		InPlace: [][2]string{{"y", "d.x"}, {"d.y", "d.x"}},
	}, op.PerElement(4))},
}

func infer(c *op.Call) error {
	if err := op.Elementwise(c); err != nil {
		return err
	}
	if err := c.PositiveFloat("cap"); err != nil {
		return err
	}
	c.Consts = append(c.Consts, op.FloatConst("Cap", c.Float("cap")))
	return nil
}
