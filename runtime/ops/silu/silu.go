// Package silu is the room of SiLU (also called swish):
//
//	y[b,t,d]  = x * sigmoid(x)                       x, y [B, T, D]
//	dx[b,t,d] = dy * s * (1 + x * (1 - s)),  s = sigmoid(x)
//
// Backward reads x. Source: Elfwing et al., arXiv 1702.03118.
package silu

import "github.com/megatrain/mtc/runtime/op"

// Def declares silu.
var Def = &op.Def{
	Name:    "silu",
	Doc:     "x * sigmoid(x), elementwise",
	Formula: "y[b,t,d] = x[b,t,d] / (1 + exp(-x[b,t,d]))",
	Example: "x = silu(x)",
	Params:  []op.Param{{Name: "x", Kind: op.Tensor, Doc: "[B, T, D]"}},
	Infer:   op.Elementwise,
	RowWise: true,
	Ragged:  true,
	Forward: op.WithCost(op.Launch{
		Func: "Forward", Reads: []string{"x"}, Writes: []string{"y"},
		InPlace: [][2]string{{"x", "y"}},
	}, op.PerElement(4)),
	Backward: []op.Launch{op.WithCost(op.Launch{
		Func: "Backward", Reads: []string{"x", "d.y"}, Writes: []string{"d.x"}, Adds: []string{"d.x"},
		InPlace: [][2]string{{"x", "d.x"}, {"d.y", "d.x"}},
	}, op.PerElement(8))},
}
