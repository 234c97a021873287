// Package relu is the room of the rectifier:
//
//	y[b,t,d]  = max(x, 0)          x, y [B, T, D]
//	dx[b,t,d] = dy where y > 0, else 0
//
// Backward reads y, so that x may be overwritten.
package relu

import "github.com/megatrain/mtc/runtime/op"

// Def declares relu.
var Def = &op.Def{
	Name:    "relu",
	Doc:     "max(x, 0), elementwise",
	Formula: "y[b,t,d] = max(x[b,t,d], 0)",
	Example: "x = relu(x)",
	Params:  []op.Param{{Name: "x", Kind: op.Tensor, Doc: "[B, T, D]"}},
	Infer:   op.Elementwise,
	RowWise: true,
	Ragged:  true,
	Forward: op.WithCost(op.Launch{
		Func: "Forward", Reads: []string{"x"}, Writes: []string{"y"},
		InPlace: [][2]string{{"x", "y"}},
	}, op.PerElement(1)),
	Backward: []op.Launch{op.WithCost(op.Launch{
		Func: "Backward", Reads: []string{"y", "d.y"}, Writes: []string{"d.x"}, Adds: []string{"d.x"},
		InPlace: [][2]string{{"y", "d.x"}, {"d.y", "d.x"}},
	}, op.PerElement(2))},
}
