// Package sigmoid is the room of the logistic function:
//
//	y[b,t,d]  = 1 / (1 + exp(-x))  x, y [B, T, D]
//	dx[b,t,d] = dy * y * (1 - y)
//
// Backward reads y.
package sigmoid

import "github.com/megatrain/mtc/runtime/op"

// Def declares sigmoid.
var Def = &op.Def{
	Name:    "sigmoid",
	Doc:     "1 / (1 + exp(-x)), elementwise",
	Formula: "y[b,t,d] = 1 / (1 + exp(-x[b,t,d]))",
	Example: "x = sigmoid(x)",
	Params:  []op.Param{{Name: "x", Kind: op.Tensor, Doc: "[B, T, D]"}},
	Infer:   op.Elementwise,
	RowWise: true,
	Ragged:  true,
	Forward: op.WithCost(op.Launch{
		Func: "Forward", Reads: []string{"x"}, Writes: []string{"y"},
		InPlace: [][2]string{{"x", "y"}},
	}, op.PerElement(4)),
	Backward: []op.Launch{op.WithCost(op.Launch{
		Func: "Backward", Reads: []string{"y", "d.y"}, Writes: []string{"d.x"}, Adds: []string{"d.x"},
		InPlace: [][2]string{{"y", "d.x"}, {"d.y", "d.x"}},
	}, op.PerElement(3))},
}
