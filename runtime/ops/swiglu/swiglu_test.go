package swiglu

import (
	"math"
	"testing"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/tensor"
)

func TestSwiglu(t *testing.T) {
	optest.Run(t, optest.Case{
		Def:   Def,
		Funcs: map[string]any{"Forward": Forward, "Backward": Backward},
		Good: []optest.Good{{
			Name: "swiglu", In: []tensor.Type{optest.F32(10), optest.F32(10)}, Out: "[B, T, D = 10]", Batch: 2, Seq: 3,
			// 60 elements, 5 and 12 operations; three and five tensors of 240 bytes.
			Cost: map[string]op.Cost{"Forward": {FLOPs: 300, Bytes: 720}, "Backward": {FLOPs: 720, Bytes: 1200}},
			Ref: func(v optest.Values) []float64 {
				y := make([]float64, len(v.F["gate"]))
				for i, a := range v.F["gate"] {
					b := v.F["up"][i]
					y[i] = a / (1 + math.Exp(-a)) * b
				}
				return y
			},
		}},
		Wide: optest.Widths(2, nil),
		Bad: []optest.Bad{
			{Name: "two widths", In: []tensor.Type{optest.F32(10), optest.F32(11)}, Arg: "up", Want: "[B, T, D = 10], the shape of `gate`, got [B, T, D = 11]"},
			{Name: "ids", In: []tensor.Type{optest.F32(10), optest.Ids()}, Arg: "up", Want: "i32[B, T]"},
		},
	})
}
