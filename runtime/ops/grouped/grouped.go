// Package grouped is the room of the experts' projection: each expert's rows times its own
// matrix. The rows of expert e are those from offsets[e] to offsets[e+1] of a routing
// (package moe), of M = N*C slots:
//
//	y[r,o]         = sum over i of x[r,i] * weight[e,o,i] + bias[e,o]    x [B, T, C*I], weight [E, O, I], y [B, T, C*O]
//	dx[r,i]        = sum over o of dy[r,o] * weight[e,o,i]
//	dweight[e,o,i] = sum over the rows r of e of dy[r,o] * x[r,i]
//	dbias[e,o]     = sum over the rows r of e of dy[r,o]
//
// Rows behind the last one in use are neither read nor written. An expert without rows has a
// gradient of zero. A row's result does not depend on how many rows there are.
package grouped

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Def declares grouped.
var Def = &op.Def{
	Name:    "grouped",
	Doc:     "a linear layer with a matrix for each expert, over the expert's rows",
	Formula: "y[r,o] = sum_i x[r,i] * weight[expert[r],o,i] + bias[expert[r],o]",
	Hidden:  true,
	Params: []op.Param{
		{Name: "x", Kind: op.Tensor, Doc: "[B, T, C*I]"},
		{Name: "routing", Kind: op.Tensor, Doc: "what the router made"},
		{Name: "out", Kind: op.Int, Doc: "O, the width of the result"},
		{Name: "bias", Kind: op.Bool, Default: op.BoolValue(false), Doc: "adds a bias of O elements for each expert, which starts at 0"},
		{Name: "experts", Kind: op.Int, Doc: "E"},
		{Name: "slots", Kind: op.Int, Doc: "C: rows a token that memory is made for"},
		{Name: "most", Kind: op.Int, Doc: "C in generation"},
		{Name: "mean", Kind: op.Float, Doc: "rows a token that there are on average, for the cost"},
		{Name: "init", Kind: op.InitKind, Default: op.None(), Doc: "how the weights start"},
	},
	Infer:   infer,
	Forward: launch("Forward", []string{"x", "weight", "routing", "bias"}, "y"),
	Backward: []op.Launch{
		adds(launch("BackwardInput", []string{"weight", "routing", "d.y"}, "d.x")),
		adds(launch("BackwardWeight", []string{"x", "routing", "d.y"}, "d.weight")),
		{Func: "BackwardBias", Reads: []string{"routing", "d.y"}, Writes: []string{"d.bias"}, Adds: []string{"d.bias"}, Cost: biasCost,
			Scratch: func(c *op.Call, _ op.Sizes) int64 {
				return biasWork(&device.Args{I: [device.MaxInts]int64{0, 0, c.Int("out"), c.Int("experts")}})
			}},
	},
}

func launch(name string, reads []string, write string) op.Launch {
	return op.Launch{Func: name, Reads: reads, Writes: []string{write}, Cost: cost(write), Shape: shape(write)}
}

// shape is that of one product over the rows of all experts, which is how fast it runs; the
// gradient of weights is a product for each of them.
func shape(write string) func(c *op.Call, s op.Sizes) op.Shape {
	return func(c *op.Call, s op.Sizes) op.Shape {
		rows := max(1, int64(float64(s.Rows())*c.Float("mean")))
		in, out, e := c.In[0].Shape.Last().N/c.Int("slots"), c.Int("out"), c.Int("experts")
		switch write {
		case "d.x":
			return op.Shape{Class: op.Product, Form: "nn", M: rows, N: in, K: out, Count: 1, Groups: e}
		case "d.weight":
			return op.Shape{Class: op.Product, Form: "tn", M: out, N: in, K: max(1, rows/e), Count: e}
		}
		return op.Shape{Class: op.Product, Form: "nt", M: rows, N: out, K: in, Count: 1, Groups: e}
	}
}

// adds lets the gradient of a weight add; that of rows has one reader.
func adds(l op.Launch) op.Launch {
	l.Adds = l.Writes
	return l
}

func infer(c *op.Call) error {
	x, err := c.Activation("x")
	if err != nil {
		return err
	}
	if err := c.Positive("out"); err != nil {
		return err
	}
	slots, e, out := c.Int("slots"), c.DimOf("experts"), c.DimOf("out")
	in := tensor.Dim{N: x.Shape.Last().N / slots}
	if r, ok := c.Input("routing"); !ok || r.DType != tensor.I32 || r.Shape.Last().N != moe.RoutingWords(e.N, slots) {
		return &op.ArgError{Arg: "routing", Want: "a routing", Got: r.String()}
	}
	if err := op.Fits("out", out.N*e.N, in.N*slots); err != nil {
		return err
	}
	c.Out = tensor.Type{DType: x.DType, Shape: x.Shape.WithLast(tensor.Dim{N: slots * out.N})}
	c.Weights = []op.Weight{{Name: "weight", Shape: tensor.Shape{e, out, in}, Role: op.Matrix, Experts: e.N}}
	if c.Bool("bias") {
		c.Weights = append(c.Weights, op.Weight{Name: "bias", Shape: tensor.Shape{e, out}, Role: op.Bias, Experts: e.N})
	}
	c.Consts = []op.Const{
		op.RowsConst(), op.IntConst("In", in.N), op.IntConst("Out", out.N), op.IntConst("Experts", e.N), op.IntConst("Slots", slots),
	}
	return nil
}

func biasCost(c *op.Call, s op.Sizes) op.Cost {
	rows, out := int64(float64(s.Rows())*c.Float("mean")), c.Int("out")
	return op.Cost{FLOPs: rows * out, Bytes: rows*out*c.Out.DType.Size() + 4*out*c.Int("experts")}
}

// cost counts the rows that there are on average.
func cost(write string) func(c *op.Call, s op.Sizes) op.Cost {
	return func(c *op.Call, s op.Sizes) op.Cost {
		rows := int64(float64(s.Rows()) * c.Float("mean"))
		in, out := c.In[0].Shape.Last().N/c.Int("slots"), c.Int("out")
		size := c.Out.DType.Size()
		t, _ := c.Operand("weight")
		bytes := rows*(in+out)*size + s.Bytes(t)
		if write == "d.weight" {
			bytes = rows*(in+out)*size + 4*s.Elems(t.Shape)
		}
		return op.Cost{FLOPs: 2 * rows * in * out, Bytes: bytes}
	}
}
