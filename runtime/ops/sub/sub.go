// Package sub is the room of the operator -:
//
//	y[b,t,d]  = a - b              a, b, y [B, T, D]
//	da[b,t,d] = dy
//	db[b,t,d] = -dy
package sub

import "github.com/megatrain/mtc/runtime/op"

// Def declares sub, the operator -.
var Def = &op.Def{
	Name:    "sub",
	Doc:     "a - b, elementwise",
	Formula: "y[b,t,d] = a[b,t,d] - b[b,t,d]",
	Example: "x = x - x",
	Hidden:  true,
	Params: []op.Param{
		{Name: "a", Kind: op.Tensor, Doc: "[B, T, D]"},
		{Name: "b", Kind: op.Tensor, Doc: "[B, T, D]"},
	},
	Infer:   op.Elementwise,
	RowWise: true,
	Ragged:  true,
	Forward: op.WithCost(op.Launch{
		Func: "Forward", Reads: []string{"a", "b"}, Writes: []string{"y"},
		InPlace: [][2]string{{"a", "y"}, {"b", "y"}},
	}, op.PerElement(1)),
	Backward: []op.Launch{
		op.WithCost(op.Launch{
			Func: "BackwardA", Reads: []string{"d.y"}, Writes: []string{"d.a"}, Adds: []string{"d.a"},
			InPlace: [][2]string{{"d.y", "d.a"}},
		}, op.PerElement(1)),
		op.WithCost(op.Launch{
			Func: "BackwardB", Reads: []string{"d.y"}, Writes: []string{"d.b"}, Adds: []string{"d.b"},
			InPlace: [][2]string{{"d.y", "d.b"}},
		}, op.PerElement(1)),
	},
}
