package linear

import (
	"testing"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/tensor"
)

func TestLinear(t *testing.T) {
	in := []tensor.Type{optest.F32(10)}
	out := op.Value{Kind: op.VInt, Int: 7, Dim: "F"}
	// 6 rows, a 7 x 10 weight: 2*6*7*10 = 840 operations. In bytes x is 240, weight 280, y 168.
	grads := map[string]op.Cost{
		"Forward":        {FLOPs: 840, Bytes: 688},
		"BackwardInput":  {FLOPs: 840, Bytes: 688},
		"BackwardWeight": {FLOPs: 840, Bytes: 688},
	}
	optest.Run(t, optest.Case{
		Def: Def,
		Funcs: map[string]any{
			"Forward": Forward, "BackwardInput": BackwardInput,
			"BackwardWeight": BackwardWeight, "BackwardBias": BackwardBias,
		},
		Good: []optest.Good{{
			Name: "plain", In: in, Attr: map[string]op.Value{"out": out},
			Out: "[B, T, F = 7]", Batch: 2, Seq: 3, Cost: grads, Ref: reference,
		}, {
			Name: "bias", In: in, Attr: map[string]op.Value{"out": out, "bias": *op.BoolValue(true)},
			Out: "[B, T, F = 7]", Batch: 2, Seq: 3, Ref: reference,
			// The bias adds 42 operations and 28 bytes.
			Cost: map[string]op.Cost{
				"Forward":        {FLOPs: 882, Bytes: 716},
				"BackwardInput":  grads["BackwardInput"],
				"BackwardWeight": grads["BackwardWeight"],
				"BackwardBias":   {FLOPs: 42, Bytes: 196},
			},
		}},
		Wide: []optest.Good{
			{Name: "wide", In: []tensor.Type{optest.F32(24)}, Attr: map[string]op.Value{"out": *op.IntValue(272), "bias": *op.BoolValue(true)}, Batch: 2, Seq: 97},
			{Name: "wide odd", In: []tensor.Type{optest.F32(5)}, Attr: map[string]op.Value{"out": *op.IntValue(517), "bias": *op.BoolValue(true)}, Batch: 1, Seq: 67},
		},
		Bad: []optest.Bad{
			{Name: "no width", In: in, Attr: map[string]op.Value{"out": *op.IntValue(0)}, Arg: "out", Want: "positive"},
			{Name: "a width beyond memory", In: in, Attr: map[string]op.Value{"out": *op.IntValue(1 << 62)}, Arg: "out", Want: "2^60"},
			{Name: "ids", In: []tensor.Type{optest.Ids()}, Attr: map[string]op.Value{"out": out}, Arg: "x", Want: "i32[B, T]"},
		},
	})
}

func reference(v optest.Values) []float64 {
	x, weight, bias := v.F["x"], v.F["weight"], v.F["bias"]
	y := make([]float64, v.Batch*v.Seq*7)
	for i := range y {
		r, o := i/7, i%7
		if bias != nil {
			y[i] = bias[o]
		}
		for k := range 10 {
			y[i] += x[r*10+k] * weight[o*10+k]
		}
	}
	return y
}
