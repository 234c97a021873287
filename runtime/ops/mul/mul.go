// Package mul is the room of the operator * between tensors:
//
//	y[b,t,d]  = a * b              a, b, y [B, T, D]
//	da[b,t,d] = dy * b
//	db[b,t,d] = dy * a
package mul

import "github.com/megatrain/mtc/runtime/op"

// Def declares mul, the operator * of two tensors.
var Def = &op.Def{
	Name:    "mul",
	Doc:     "a * b, elementwise",
	Formula: "y[b,t,d] = a[b,t,d] * b[b,t,d]",
	Example: "x = x * x",
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
			Func: "BackwardA", Reads: []string{"b", "d.y"}, Writes: []string{"d.a"}, Adds: []string{"d.a"},
			InPlace: [][2]string{{"b", "d.a"}, {"d.y", "d.a"}},
		}, op.PerElement(2)),
		op.WithCost(op.Launch{
			Func: "BackwardB", Reads: []string{"a", "d.y"}, Writes: []string{"d.b"}, Adds: []string{"d.b"},
			InPlace: [][2]string{{"a", "d.b"}, {"d.y", "d.b"}},
		}, op.PerElement(2)),
	},
}
