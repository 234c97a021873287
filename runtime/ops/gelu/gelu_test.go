package gelu

import (
	"math"
	"testing"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/tensor"
)

func TestGelu(t *testing.T) {
	in := []tensor.Type{optest.F32(10)}
	optest.Run(t, optest.Case{
		Def:   Def,
		Funcs: map[string]any{"Forward": Forward, "Backward": Backward},
		Good: []optest.Good{{
			Name: "tanh", In: in, Out: "[B, T, D = 10]", Batch: 2, Seq: 3,
			// 60 elements: 8 operations forward, 16 backward; 2 and 3 tensors of 240 bytes.
			Cost: map[string]op.Cost{"Forward": {FLOPs: 480, Bytes: 480}, "Backward": {FLOPs: 960, Bytes: 720}},
			Ref:  each(tanh),
		}, {
			Name: "exact", In: in, Attr: map[string]op.Value{"approx": *op.WordValue("exact")},
			Out: "[B, T, D = 10]", Batch: 2, Seq: 3,
			Cost: map[string]op.Cost{"Forward": {FLOPs: 480, Bytes: 480}, "Backward": {FLOPs: 960, Bytes: 720}},
			Ref:  each(func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }),
		}},
		Wide: append(optest.Widths(1, nil), optest.Good{
			Name: "exact wide", In: []tensor.Type{optest.F32(136)}, Attr: map[string]op.Value{"approx": *op.WordValue("exact")}, Batch: 2, Seq: 33, Range: 6,
		}),
		Bad: []optest.Bad{
			{Name: "ids", In: []tensor.Type{optest.Ids()}, Arg: "x", Want: "i32[B, T]"},
			{Name: "an unknown form", In: in, Attr: map[string]op.Value{"approx": *op.WordValue("sigmoid")}, Arg: "approx", Want: "tanh or exact"},
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

func tanh(x float64) float64 {
	return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}
