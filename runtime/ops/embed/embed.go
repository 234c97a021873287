// Package embed is the room of the table look-up:
//
//	y[b,t,d]        = weight[ids[b,t], d]      ids i32 [B, T], weight [V, D], y [B, T, D]
//	dweight[v,d]    = sum of dy[b,t,d] over all b, t with ids[b,t] = v
//
// dweight is dense: rows that no id names get zero (or what they add to). An id outside
// [0, V) is a fault in the data and stops the run by name.
package embed

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Def declares embed.
var Def = &op.Def{
	Name:    "embed",
	Doc:     "looks up one row of a table for each id",
	Formula: "y[b,t,d] = weight[ids[b,t], d]",
	Example: "x = x + pos: embed(position, 4096, D)",
	Params: []op.Param{
		{Name: "ids", Kind: op.Tensor, Doc: "i32 [B, T]: tokens or position"},
		{Name: "rows", Kind: op.Int, Doc: "rows of the table: V for tokens, the longest context for position"},
		{Name: "dim", Kind: op.Int, Doc: "width of a row"},
		{Name: "init", Kind: op.InitKind, Default: op.None(), Doc: "how the table starts; none: the model's init"},
	},
	Infer:   infer,
	RowWise: true,
	Forward: op.Launch{Func: "Forward", Reads: []string{"ids", "weight"}, Writes: []string{"y"}, Cost: forwardCost},
	Backward: []op.Launch{{
		Func: "BackwardWeight", Reads: []string{"ids", "d.y"}, Writes: []string{"d.weight"}, Adds: []string{"d.weight"},
		Cost: backwardCost,
		Scratch: func(c *op.Call, s op.Sizes) int64 {
			return work(&device.Args{I: [device.MaxInts]int64{s.Elems(c.In[0].Shape), 0, c.Out.Shape.Last().N}})
		},
	}},
}

func infer(c *op.Call) error {
	ids := c.In[0]
	if ids.DType != tensor.I32 {
		return &op.ArgError{Arg: "ids", Want: "ids, i32[B, T]", Got: ids.String(),
			Hint: "embed takes `tokens` or `position`; a projection of a tensor is `linear(x, D)`"}
	}
	if err := c.Positive("rows"); err != nil {
		return err
	}
	if err := c.Positive("dim"); err != nil {
		return err
	}
	rows, dim := c.DimOf("rows"), c.DimOf("dim")
	if err := op.Fits("rows", rows.N, dim.N); err != nil {
		return err
	}
	c.Out = tensor.Type{DType: tensor.F32, Shape: append(append(tensor.Shape(nil), ids.Shape...), dim)}
	c.Weights = []op.Weight{{Name: "weight", Shape: tensor.Shape{rows, dim}, Role: op.Embedding}}
	c.Consts = []op.Const{op.RowsConst(), op.IntConst("V", rows.N), op.IntConst("D", dim.N)}
	return nil
}

// forwardCost counts the rows that are looked up, not the whole table.
func forwardCost(c *op.Call, s op.Sizes) op.Cost {
	return op.Cost{Bytes: c.Moved(s, "ids") + 2*c.Moved(s, "y")}
}

func backwardCost(c *op.Call, s op.Sizes) op.Cost {
	return op.Cost{FLOPs: s.Elems(c.Out.Shape), Bytes: c.Moved(s, "ids", "d.y", "d.weight")}
}
