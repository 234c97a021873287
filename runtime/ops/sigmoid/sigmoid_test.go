package sigmoid

import (
	"math"
	"testing"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/tensor"
)

func TestSigmoid(t *testing.T) {
	in := []tensor.Type{optest.F32(10)}
	optest.Run(t, optest.Case{
		Def:   Def,
		Funcs: map[string]any{"Forward": Forward, "Backward": Backward},
		Good: []optest.Good{{
			Name: "sigmoid", In: in, Out: "[B, T, D = 10]", Batch: 2, Seq: 3,
			// 60 elements: 4 operations forward, 3 backward; 2 and 3 tensors of 240 bytes.
			Cost: map[string]op.Cost{"Forward": {FLOPs: 240, Bytes: 480}, "Backward": {FLOPs: 180, Bytes: 720}},
			Ref:  each(func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }),
		}},
		Wide: optest.Widths(1, nil),
		Bad: []optest.Bad{
			{Name: "ids", In: []tensor.Type{optest.Ids()}, Arg: "x", Want: "i32[B, T]"},
		},
	})
}

func each(f func(x float64) float64) func(optest.Values) []float64 {
	return func(v optest.Values) []float64 {
		y := make([]float64, len(v.F["x"]))
		for i, x := range v.F["x"] {
			y[i] = f(x)
		}
		return y
	}
}
