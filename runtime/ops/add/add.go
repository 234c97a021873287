// Package add is the room of the operator +:
//
//	y[b,t,d] = a + b               a, b, y [B, T, D]
//
// The gradient of both inputs is dy itself, so backward launches nothing. Where gradients
// meet, the compiler adds them with the same launcher.
package add

import "github.com/megatrain/mtc/runtime/op"

// Def declares add, the operator +.
var Def = &op.Def{
	Name:    "add",
	Doc:     "a + b, elementwise",
	Formula: "y[b,t,d] = a[b,t,d] + b[b,t,d]",
	Example: "x = x + x",
	Hidden:  true,
	Params: []op.Param{
		{Name: "a", Kind: op.Tensor, Doc: "[B, T, D]"},
		{Name: "b", Kind: op.Tensor, Doc: "[B, T, D]"},
	},
	Infer:       op.Elementwise,
	RowWise:     true,
	Ragged:      true,
	PassThrough: true,
	Forward: op.WithCost(op.Launch{
		Func: "Forward", Reads: []string{"a", "b"}, Writes: []string{"y"},
		InPlace: [][2]string{{"a", "y"}, {"b", "y"}},
	}, op.PerElement(1)),
}
