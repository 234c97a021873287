// Package relu2 is the room of the squared rectifier:
//
//	y[b,t,d]  = max(x, 0)^2        x, y [B, T, D]
//	dx[b,t,d] = 2 * max(x, 0) * dy
//
// Backward reads x. Source: So et al. (Primer), arXiv 2109.08668.
package relu2

import "github.com/megatrain/mtc/runtime/op"

// Def declares relu2.
var Def = &op.Def{
	Name:    "relu2",
	Doc:     "max(x, 0)^2, elementwise",
	Formula: "y[b,t,d] = max(x[b,t,d], 0)^2",
	Example: "x = relu2(x)",
	Params:  []op.Param{{Name: "x", Kind: op.Tensor, Doc: "[B, T, D]"}},
	Infer:   op.Elementwise,
	RowWise: true,
	Ragged:  true,
	Forward: op.WithCost(op.Launch{
		Func: "Forward", Reads: []string{"x"}, Writes: []string{"y"},
		InPlace: [][2]string{{"x", "y"}},
	}, op.PerElement(2)),
	Backward: []op.Launch{op.WithCost(op.Launch{
		Func: "Backward", Reads: []string{"x", "d.y"}, Writes: []string{"d.x"}, Adds: []string{"d.x"},
		InPlace: [][2]string{{"x", "d.x"}, {"d.y", "d.x"}},
	}, op.PerElement(3))},
}
