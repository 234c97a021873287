package moe

import (
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// GatherDef declares the rows that experts read:
//
//	y[r]  = x[token of r]                          y [B, T, C*D]: M rows, those in use first
//	dx[t] = sum over the rows r of t of dy[r]      in ascending order of expert
var GatherDef = &op.Def{
	Name:    "moe_gather",
	Room:    Room,
	Doc:     "tokens in the order of the experts they go to",
	Formula: "y[r] = x[token[r]]",
	Hidden:  true,
	Params: []op.Param{
		{Name: "x", Kind: op.Tensor, Doc: "[B, T, D]"},
		{Name: "routing", Kind: op.Tensor, Doc: "what select made"},
		{Name: "experts", Kind: op.Int, Doc: "E"},
		{Name: "slots", Kind: op.Int, Doc: "C"},
		{Name: "most", Kind: op.Int, Doc: "C in generation"},
	},
	Infer: func(c *op.Call) error {
		x, err := c.Activation("x")
		if err != nil {
			return err
		}
		d := x.Shape.Last().N
		c.Out = tensor.Type{DType: x.DType, Shape: x.Shape.WithLast(tensor.Dim{N: c.Int("slots") * d})}
		c.Consts = rowConsts(c, d)
		return nil
	},
	Forward:  op.Launch{Func: "Gather", Reads: []string{"x", "routing"}, Writes: []string{"y"}, Cost: rowsCost("y", "y")},
	Backward: []op.Launch{{Func: "GatherBackward", Reads: []string{"routing", "d.y"}, Writes: []string{"d.x"}, Adds: []string{"d.x"}, Cost: rowsCost("y", "x")}},
}

// CombineDef declares the sum of what experts gave:
//
//	y[t]     = sum over the rows r of t of gate[r] * x[r]      x [B, T, C*D], gates f32 [B, T, C], y [B, T, D]
//	dx[r]    = gate[r] * dy[token of r]
//	dgate[r] = sum over i of dy[token of r, i] * x[r,i]
//
// in ascending order of expert; 0 for a token without experts.
var CombineDef = &op.Def{
	Name:    "moe_combine",
	Room:    Room,
	Doc:     "the results of a token's experts, times their gates, added up",
	Formula: "y[t] = sum_r gate[r] * x[r]",
	Hidden:  true,
	Params: []op.Param{
		{Name: "x", Kind: op.Tensor, Doc: "[B, T, C*D]"},
		{Name: "gates", Kind: op.Tensor, Doc: "f32 [B, T, C]"},
		{Name: "routing", Kind: op.Tensor, Doc: "what select made"},
		{Name: "experts", Kind: op.Int, Doc: "E"},
		{Name: "slots", Kind: op.Int, Doc: "C"},
		{Name: "most", Kind: op.Int, Doc: "C in generation"},
	},
	Infer: func(c *op.Call) error {
		x, err := c.Activation("x")
		if err != nil {
			return err
		}
		d := x.Shape.Last().N / c.Int("slots")
		c.Out = tensor.Type{DType: x.DType, Shape: x.Shape.WithLast(tensor.Dim{N: d})}
		c.Consts = rowConsts(c, d)
		return nil
	},
	Forward: op.Launch{Func: "Combine", Reads: []string{"x", "gates", "routing"}, Writes: []string{"y"}, Cost: rowsCost("x", "y")},
	Backward: []op.Launch{{
		Func: "CombineBackward", Reads: []string{"x", "gates", "routing", "d.y"}, Writes: []string{"d.x", "d.gates"},
		InPlace: [][2]string{{"x", "d.x"}}, Cost: rowsCost("x", "x"),
	}},
}

func rowConsts(c *op.Call, d int64) []op.Const {
	return []op.Const{op.RowsConst(), op.IntConst("D", d), op.IntConst("Experts", c.Int("experts")), op.IntConst("Slots", c.Int("slots"))}
}

// rowsCost counts an addition and a product for each element of one operand and the bytes of
// two, all slots in use.
func rowsCost(each, other string) func(c *op.Call, s op.Sizes) op.Cost {
	return func(c *op.Call, s op.Sizes) op.Cost {
		t, _ := c.Operand(each)
		u, _ := c.Operand(other)
		return op.Cost{FLOPs: 2 * s.Elems(t.Shape), Bytes: s.Bytes(t) + s.Bytes(u)}
	}
}
