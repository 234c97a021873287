package copy

import (
	"testing"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/tensor"
)

func TestCopy(t *testing.T) {
	optest.Run(t, optest.Case{
		Def:   Def,
		Funcs: map[string]any{"Forward": Forward},
		Good: []optest.Good{{
			Name: "copy", In: []tensor.Type{optest.F32(10)}, Out: "[B, T, D = 10]", Batch: 2, Seq: 3,
			Cost: map[string]op.Cost{"Forward": {Bytes: 480}},
			Ref:  func(v optest.Values) []float64 { return append([]float64(nil), v.F["x"]...) },
		}},
		Wide: optest.Widths(1, nil),
		Bad:  []optest.Bad{{Name: "ids", In: []tensor.Type{optest.Ids()}, Arg: "x", Want: "i32[B, T]"}},
	})
}
