package sub

import (
	"testing"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/tensor"
)

func TestSub(t *testing.T) {
	optest.Run(t, optest.Case{
		Def:   Def,
		Funcs: map[string]any{"Forward": Forward, "BackwardA": BackwardA, "BackwardB": BackwardB},
		Good: []optest.Good{{
			Name: "sub", In: []tensor.Type{optest.F32(10), optest.F32(10)}, Out: "[B, T, D = 10]", Batch: 2, Seq: 3,
			// 60 elements, tensors of 240 bytes: three forward, two for each gradient.
			Cost: map[string]op.Cost{"Forward": {FLOPs: 60, Bytes: 720}, "BackwardA": {FLOPs: 60, Bytes: 480}, "BackwardB": {FLOPs: 60, Bytes: 480}},
			Ref: func(v optest.Values) []float64 {
				y := make([]float64, len(v.F["a"]))
				for i, a := range v.F["a"] {
					b := v.F["b"][i]
					y[i] = a - b
				}
				return y
			},
		}},
		Wide: optest.Widths(2, nil),
		Bad: []optest.Bad{
			{Name: "two widths", In: []tensor.Type{optest.F32(10), optest.F32(11)}, Arg: "b", Want: "[B, T, D = 10], the shape of `a`, got [B, T, D = 11]"},
			{Name: "ids", In: []tensor.Type{optest.F32(10), optest.Ids()}, Arg: "b", Want: "i32[B, T]"},
		},
	})
}
