// Package swiglu is the room of the fused gate that the compiler makes of
// silu(gate) * up:
//
//	y[b,t,f]     = gate * s * up,  s = sigmoid(gate)          gate, up, y [B, T, F]
//	dgate[b,t,f] = dy * up * s * (1 + gate * (1 - s))
//	dup[b,t,f]   = dy * gate * s
//
// Backward reads gate and up. Source: Shazeer, arXiv 2002.05202.
package swiglu

import "github.com/megatrain/mtc/runtime/op"

// Def declares swiglu.
var Def = &op.Def{
	Name:    "swiglu",
	Doc:     "silu(gate) * up, fused",
	Formula: "y[b,t,f] = gate[b,t,f] / (1 + exp(-gate[b,t,f])) * up[b,t,f]",
	Example: "x = silu(x) * x",
	Hidden:  true,
	Params: []op.Param{
		{Name: "gate", Kind: op.Tensor, Doc: "[B, T, F]"},
		{Name: "up", Kind: op.Tensor, Doc: "[B, T, F]"},
	},
	Infer:   op.Elementwise,
	RowWise: true,
	Ragged:  true,
	Forward: op.WithCost(op.Launch{
		Func: "Forward", Reads: []string{"gate", "up"}, Writes: []string{"y"},
		InPlace: [][2]string{{"gate", "y"}, {"up", "y"}},
	}, op.PerElement(5)),
	Backward: []op.Launch{op.WithCost(op.Launch{
		Func: "Backward", Reads: []string{"gate", "up", "d.y"},
		Writes: []string{"d.gate", "d.up"}, Adds: []string{"d.gate", "d.up"},
		InPlace: [][2]string{
			{"gate", "d.gate"}, {"up", "d.gate"}, {"d.y", "d.gate"},
			{"gate", "d.up"}, {"up", "d.up"}, {"d.y", "d.up"},
		},
	}, op.PerElement(12))},
}
