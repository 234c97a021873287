package softcap

import (
	"math"
	"testing"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/tensor"
)

func TestSoftcap(t *testing.T) {
	in := []tensor.Type{optest.F32(10)}
	optest.Run(t, optest.Case{
		Def:   Def,
		Funcs: map[string]any{"Forward": Forward, "Backward": Backward},
		Good: []optest.Good{{
			Name: "cap 1.5", In: in, Attr: map[string]op.Value{"cap": *op.FloatValue(1.5)}, Out: "[B, T, D = 10]", Batch: 2, Seq: 3,
			// 60 elements: 3 operations forward, 4 backward; 2 and 3 tensors of 240 bytes.
			Cost: map[string]op.Cost{"Forward": {FLOPs: 180, Bytes: 480}, "Backward": {FLOPs: 240, Bytes: 720}},
			Ref:  each(func(x float64) float64 { return 1.5 * math.Tanh(x/1.5) }),
		}},
		Wide: optest.Widths(1, map[string]op.Value{"cap": *op.FloatValue(30)}),
		Bad: []optest.Bad{
			{Name: "ids", In: []tensor.Type{optest.Ids()}, Arg: "x", Want: "i32[B, T]"},
			{Name: "a cap of 0", In: in, Attr: map[string]op.Value{"cap": *op.IntValue(0)}, Arg: "cap", Want: "above 0"},
			{Name: "an infinite cap", In: in, Attr: map[string]op.Value{"cap": *op.FloatValue(math.Inf(1))}, Arg: "cap", Want: "above 0"},
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
