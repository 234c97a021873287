package fill

import (
	"testing"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/optest"
)

func TestFill(t *testing.T) {
	attr := func(n int64, x float64) map[string]op.Value {
		return map[string]op.Value{"n": *op.IntValue(n), "value": *op.FloatValue(x)}
	}
	optest.Run(t, optest.Case{
		Def:   Def,
		Funcs: map[string]any{"Forward": Forward},
		Good: []optest.Good{{
			Name: "fill", Attr: attr(37, -2.5), Out: "[37]", Batch: 1, Seq: 1,
			Cost: map[string]op.Cost{"Forward": {Bytes: 148}},
			Ref: func(optest.Values) []float64 {
				y := make([]float64, 37)
				for i := range y {
					y[i] = -2.5
				}
				return y
			},
		}},
		Wide: []optest.Good{{Name: "wide", Attr: attr(9001, 1e-3), Batch: 1, Seq: 1}},
		F32:  []string{"y"},
		Bad:  []optest.Bad{{Name: "nothing", Attr: attr(0, 1), Arg: "n", Want: "positive"}},
	})
}
