// Package gelu is the room of GELU:
//
//	exact: y[b,t,d] = x * (1 + erf(x / sqrt(2))) / 2                                 x, y [B, T, D]
//	tanh:  y[b,t,d] = x * (1 + tanh(u)) / 2,  u = sqrt(2/pi) * (x + 0.044715 * x^3)
//
//	exact: dx = dy * ((1 + erf(x / sqrt(2))) / 2 + x * exp(-x*x/2) / sqrt(2*pi))
//	tanh:  dx = dy * ((1 + tanh(u)) / 2 + x * (1 - tanh(u)^2) * u'(x) / 2)
//
// The default is tanh, the form that GPT-2 was trained with. Backward reads x.
// Source: Hendrycks and Gimpel, arXiv 1606.08415.
package gelu

import "github.com/megatrain/mtc/runtime/op"

// Def declares gelu.
var Def = &op.Def{
	Name:    "gelu",
	Doc:     "x * Phi(x), Phi the normal distribution function, elementwise",
	Formula: "y[b,t,d] = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))), or x/2 * (1 + erf(x / sqrt(2))) when exact",
	Example: "x = gelu(x)",
	Params: []op.Param{
		{Name: "x", Kind: op.Tensor, Doc: "[B, T, D]"},
		{Name: "approx", Kind: op.Word, Default: op.WordValue("tanh"), Words: []string{"tanh", "exact"},
			Doc: "tanh: the approximation GPT-2 uses; exact: with erf"},
	},
	Infer:   infer,
	RowWise: true,
	Ragged:  true,
	Forward: op.WithCost(op.Launch{
		Func: "Forward", Reads: []string{"x"}, Writes: []string{"y"},
		InPlace: [][2]string{{"x", "y"}},
	}, op.PerElement(8)),
	Backward: []op.Launch{op.WithCost(op.Launch{
		Func: "Backward", Reads: []string{"x", "d.y"}, Writes: []string{"d.x"}, Adds: []string{"d.x"},
		InPlace: [][2]string{{"x", "d.x"}, {"d.y", "d.x"}},
	}, op.PerElement(16))},
}

func infer(c *op.Call) error {
	if err := op.Elementwise(c); err != nil {
		return err
	}
	approx := c.Word("approx")
	if approx != "tanh" && approx != "exact" {
		return &op.ArgError{Arg: "approx", Want: "tanh or exact", Got: c.Attr["approx"].String()}
	}
	c.Consts = append(c.Consts, op.BoolConst("Exact", approx == "exact"))
	return nil
}
