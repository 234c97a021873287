package scale

import (
	"math"
	"testing"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/tensor"
)

func TestScale(t *testing.T) {
	in := []tensor.Type{optest.F32(10)}
	by := func(x float64) map[string]op.Value { return map[string]op.Value{"by": *op.FloatValue(x)} }
	optest.Run(t, optest.Case{
		Def:   Def,
		Funcs: map[string]any{"Forward": Forward, "Backward": Backward},
		Good: []optest.Good{{
			Name: "by -1.7", In: in, Attr: by(-1.7), Out: "[B, T, D = 10]", Batch: 2, Seq: 3,
			// Backward reads no x: two tensors of 240 bytes each way.
			Cost: map[string]op.Cost{"Forward": {FLOPs: 60, Bytes: 480}, "Backward": {FLOPs: 120, Bytes: 480}},
			Ref: func(v optest.Values) []float64 {
				y := make([]float64, len(v.F["x"]))
				for i, x := range v.F["x"] {
					y[i] = -1.7 * x
				}
				return y
			},
		}},
		Wide: optest.Widths(1, by(-1.7)),
		Bad: []optest.Bad{
			{Name: "a factor that f32 cannot hold", In: in, Attr: by(1e39), Arg: "by", Want: "f32"},
			{Name: "no number", In: in, Attr: by(math.NaN()), Arg: "by", Want: "f32"},
		},
	})
}
