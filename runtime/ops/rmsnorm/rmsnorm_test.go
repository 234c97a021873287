package rmsnorm

import (
	"math"
	"testing"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/tensor"
)

func TestRMSNorm(t *testing.T) {
	in := []tensor.Type{optest.F32(12)}
	eps := *op.FloatValue(1e-3)
	per := op.Value{Kind: op.VInt, Int: 4, Dim: "hd"}
	optest.Run(t, optest.Case{
		Def:   Def,
		Funcs: map[string]any{"Forward": Forward, "Backward": Backward},
		Good: []optest.Good{{
			Name: "row", In: in, Attr: map[string]op.Value{"eps": eps}, Out: "[B, T, D = 12]", Batch: 2, Seq: 3,
			// 72 elements. In bytes x, y and gradients are 288, weight 48, inv 24.
			Cost: map[string]op.Cost{
				"Forward":  {FLOPs: 4 * 72, Bytes: 2*288 + 48 + 24},
				"Backward": {FLOPs: 12 * 72, Bytes: 3*288 + 2*48 + 24},
			},
			Ref: reference(12),
		}, {
			Name: "head", In: in, Attr: map[string]op.Value{"eps": eps, "per": per}, Out: "[B, T, D = 12]", Batch: 2, Seq: 3,
			// The weight has 4 elements, inv 3 for each row.
			Cost: map[string]op.Cost{
				"Forward":  {FLOPs: 4 * 72, Bytes: 2*288 + 16 + 72},
				"Backward": {FLOPs: 12 * 72, Bytes: 3*288 + 2*16 + 72},
			},
			Ref: reference(4),
		}, {
			Name: "no weight", In: in, Attr: map[string]op.Value{"eps": eps, "weight": *op.BoolValue(false)}, Out: "[B, T, D = 12]", Batch: 2, Seq: 3,
			Cost: map[string]op.Cost{
				"Forward":  {FLOPs: 4 * 72, Bytes: 2*288 + 24},
				"Backward": {FLOPs: 9 * 72, Bytes: 3*288 + 24},
			},
			Ref: reference(12),
		}},
		Wide: []optest.Good{
			{Name: "heads", In: []tensor.Type{optest.F32(512)}, Attr: map[string]op.Value{"per": *op.IntValue(128)}, Batch: 1, Seq: 37},
			{Name: "small heads", In: []tensor.Type{optest.F32(120)}, Attr: map[string]op.Value{"per": *op.IntValue(24)}, Batch: 1, Seq: 37},
			{Name: "a warp", In: []tensor.Type{optest.F32(768)}, Batch: 1, Seq: 67},
			{Name: "groups for several sweeps", In: []tensor.Type{optest.F32(1024)}, Attr: map[string]op.Value{"per": *op.IntValue(64)}, Batch: 1, Seq: 132*3*32/16 + 9},
			{Name: "a block", In: []tensor.Type{optest.F32(3584)}, Batch: 1, Seq: 5},
			{Name: "a large block", In: []tensor.Type{optest.F32(18944)}, Batch: 1, Seq: 2},
			{Name: "odd", In: []tensor.Type{optest.F32(1001)}, Batch: 1, Seq: 35},
			{Name: "long and odd", In: []tensor.Type{optest.F32(1027)}, Batch: 1, Seq: 3, Attr: map[string]op.Value{"weight": *op.BoolValue(false)}},
		},
		Bad: []optest.Bad{
			{Name: "heads that do not divide", In: in, Attr: map[string]op.Value{"per": {Kind: op.VInt, Int: 5, Dim: "hd"}}, Arg: "per", Want: "got hd = 5"},
			{Name: "heads of nothing", In: in, Attr: map[string]op.Value{"per": *op.IntValue(0)}, Arg: "per", Want: "positive"},
			{Name: "no eps", In: in, Attr: map[string]op.Value{"eps": *op.FloatValue(0)}, Arg: "eps", Want: "above 0"},
			{Name: "ids", In: []tensor.Type{optest.Ids()}, Arg: "x", Want: "i32[B, T]"},
		},
	})
}

func reference(per int) func(optest.Values) []float64 {
	return func(v optest.Values) []float64 {
		x, weight := v.F["x"], v.F["weight"]
		y := make([]float64, len(x))
		for i := 0; i < len(x); i += per {
			var sum float64
			for _, e := range x[i : i+per] {
				sum += e * e
			}
			inv := 1 / math.Sqrt(sum/float64(per)+float64(float32(1e-3)))
			for j := range per {
				y[i+j] = x[i+j] * inv
				if weight != nil {
					y[i+j] *= weight[j]
				}
			}
		}
		return y
	}
}

// TestHugeRows: squares beyond f32 do not overflow the mean.
func TestHugeRows(t *testing.T) {
	m := optest.NewMachine(t, 1)
	y, inv := m.Bytes(16), m.Bytes(4)
	Forward(m.Queue, ForwardArgs{X: m.F32(1e25, -1e25, 1e25, 1e25), Y: y, Inv: inv, Rows: 1, D: 4, Per: 4, Eps: 1e-6})
	m.Sync()
	optest.Compare(t, "y", m.ReadF32(y, 4), []float64{1, -1, 1, 1}, 1e-6)
}
