// Package copy is the room of the copy that the compiler inserts where a value needs a
// buffer of its own:
//
//	y[b,t,d] = x                   x, y [B, T, D]
package copy

import "github.com/megatrain/mtc/runtime/op"

// Def declares copy.
var Def = &op.Def{
	Name:        "copy",
	Doc:         "a copy of x in a buffer of its own",
	Formula:     "y[b,t,d] = x[b,t,d]",
	Hidden:      true,
	Params:      []op.Param{{Name: "x", Kind: op.Tensor, Doc: "[B, T, D]"}},
	Infer:       op.Elementwise,
	RowWise:     true,
	Ragged:      true,
	PassThrough: true,
	Forward: op.WithCost(op.Launch{
		Func: "Forward", Reads: []string{"x"}, Writes: []string{"y"},
	}, op.PerElement(0)),
}
