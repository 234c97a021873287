package moe

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// LogitsDef declares the router's linear layer:
//
//	logits[t,e]  = sum over i of x[t,i] * weight[e,i]        x [B, T, D], weight [E, D], logits f32 [B, T, E]
//	dx[t,i]      = sum over e of dlogits[t,e] * weight[e,i]
//	dweight[e,i] = sum over t of dlogits[t,e] * x[t,i]
//
// It differs from linear by the type of its result: logits and their gradient are f32 whatever
// the device computes in, because cutoffs are compared with them.
var LogitsDef = &op.Def{
	Name:    "moe_logits",
	Room:    Room,
	Doc:     "a router's logits, in f32",
	Formula: "logits[t,e] = sum_i x[t,i] * weight[e,i]",
	Hidden:  true,
	RowWise: true,
	F32:     true,
	Params: []op.Param{
		{Name: "x", Kind: op.Tensor, Doc: "[B, T, D]"},
		{Name: "experts", Kind: op.Int, Doc: "E"},
		{Name: "init", Kind: op.InitKind, Default: op.None(), Doc: "how the weight starts"},
	},
	Infer:   inferLogits,
	Forward: op.WithCost(op.Launch{Func: "Logits", Reads: []string{"x", "weight"}, Writes: []string{"y"}}, logitsFLOPs),
	Backward: []op.Launch{
		op.WithCost(op.Launch{Func: "LogitsBackwardInput", Reads: []string{"weight", "d.y"}, Writes: []string{"d.x"}, Adds: []string{"d.x"}}, logitsFLOPs),
		op.WithCost(op.Launch{
			Func: "LogitsBackwardWeight", Reads: []string{"x", "d.y"}, Writes: []string{"d.weight"}, Adds: []string{"d.weight"},
			Scratch: func(c *op.Call, _ op.Sizes) int64 {
				return weightWork(&device.Args{I: [device.MaxInts]int64{0, c.In[0].Shape.Last().N, c.Int("experts")}})
			},
		}, logitsFLOPs),
	},
}

func inferLogits(c *op.Call) error {
	x, err := c.Activation("x")
	if err != nil {
		return err
	}
	if err := c.Positive("experts"); err != nil {
		return err
	}
	d, e := x.Shape.Last(), c.DimOf("experts")
	if err := op.Fits("experts", e.N, d.N); err != nil {
		return err
	}
	c.Out = tensor.Type{DType: tensor.F32, Shape: x.Shape.WithLast(e)}
	c.Weights = []op.Weight{{Name: "weight", Shape: tensor.Shape{e, d}, Role: op.Matrix}}
	c.Consts = []op.Const{op.RowsConst(), op.IntConst("D", d.N), op.IntConst("Experts", e.N)}
	return nil
}

func logitsFLOPs(c *op.Call, s op.Sizes) int64 {
	return 2 * s.Elems(c.In[0].Shape) * c.Int("experts")
}
