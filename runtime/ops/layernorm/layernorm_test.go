package layernorm

import (
	"math"
	"testing"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/tensor"
)

func TestLayerNorm(t *testing.T) {
	in := []tensor.Type{optest.F32(12)}
	no := *op.BoolValue(false)
	optest.Run(t, optest.Case{
		Def: Def,
		Funcs: map[string]any{
			"Forward": Forward, "Backward": Backward,
		},
		Good: []optest.Good{{
			Name: "weight and bias", In: in, Out: "[B, T, D = 12]", Batch: 2, Seq: 3,
			// 72 elements. In bytes x, y and gradients are 288, weight and bias 48, mean and inv 24.
			Cost: map[string]op.Cost{
				"Forward":  {FLOPs: 8 * 72, Bytes: 2*288 + 2*48 + 2*24},
				"Backward": {FLOPs: 16 * 72, Bytes: 3*288 + 3*48 + 2*24},
			},
			Ref: reference,
		}, {
			Name: "weight", In: in, Attr: map[string]op.Value{"bias": no}, Out: "[B, T, D = 12]", Batch: 2, Seq: 3,
			Cost: map[string]op.Cost{
				"Forward":  {FLOPs: 8 * 72, Bytes: 2*288 + 48 + 2*24},
				"Backward": {FLOPs: 15 * 72, Bytes: 3*288 + 2*48 + 2*24},
			},
			Ref: reference,
		}, {
			Name: "bare", In: in, Attr: map[string]op.Value{"weight": no, "bias": no}, Out: "[B, T, D = 12]", Batch: 2, Seq: 3,
			Cost: map[string]op.Cost{
				"Forward":  {FLOPs: 8 * 72, Bytes: 2*288 + 2*24},
				"Backward": {FLOPs: 11 * 72, Bytes: 3*288 + 2*24},
			},
			Ref: reference,
		}},
		Wide: []optest.Good{
			{Name: "a part of a warp", In: []tensor.Type{optest.F32(40)}, Batch: 1, Seq: 21},
			{Name: "a warp", In: []tensor.Type{optest.F32(768)}, Batch: 1, Seq: 67},
			{Name: "rows for several sweeps", In: []tensor.Type{optest.F32(1024)}, Batch: 1, Seq: 132*2*8 + 9},
			{Name: "rows for many rounds of warps", In: []tensor.Type{optest.F32(520)}, Batch: 1, Seq: 128*16*3 + 9},
			{Name: "a bias alone", In: []tensor.Type{optest.F32(64)}, Batch: 1, Seq: 41, Attr: map[string]op.Value{"weight": no}},
			{Name: "a block", In: []tensor.Type{optest.F32(3584)}, Batch: 1, Seq: 5},
			{Name: "a large block", In: []tensor.Type{optest.F32(18944)}, Batch: 1, Seq: 2},
			{Name: "odd", In: []tensor.Type{optest.F32(1001)}, Batch: 1, Seq: 35},
			{Name: "one element", In: []tensor.Type{optest.F32(1)}, Batch: 1, Seq: 300, Scale: 40}, // dx: terms of 4 / sqrt(1e-5) cancel
			{Name: "long and odd", In: []tensor.Type{optest.F32(1027)}, Batch: 1, Seq: 3, Attr: map[string]op.Value{"weight": no, "bias": no}},
		},
		Bad: []optest.Bad{
			{Name: "no eps", In: in, Attr: map[string]op.Value{"eps": *op.FloatValue(-1)}, Arg: "eps", Want: "above 0"},
			{Name: "ids", In: []tensor.Type{optest.Ids()}, Arg: "x", Want: "i32[B, T]"},
		},
	})
}

func reference(v optest.Values) []float64 {
	const d = 12
	x, weight, bias := v.F["x"], v.F["weight"], v.F["bias"]
	y := make([]float64, len(x))
	for i := 0; i < len(x); i += d {
		var mean, variance float64
		for _, e := range x[i : i+d] {
			mean += e / d
		}
		for _, e := range x[i : i+d] {
			variance += (e - mean) * (e - mean) / d
		}
		inv := 1 / math.Sqrt(variance+float64(float32(1e-5)))
		for j := range d {
			y[i+j] = (x[i+j] - mean) * inv
			if weight != nil {
				y[i+j] *= weight[j]
			}
			if bias != nil {
				y[i+j] += bias[j]
			}
		}
	}
	return y
}

// TestFarMean: a row far from 0 keeps the digits of its deviations, forward and backward.
func TestFarMean(t *testing.T) {
	const d = 64
	near, far, dy := make([]float32, d), make([]float32, d), make([]float32, d)
	for i := range near {
		near[i] = float32(i*i%17) - 8
		far[i] = near[i] + 4096 // exact
		dy[i] = float32(i*i*i%13) - 6
	}
	run := func(x []float32) (y, dx []float32) {
		m := optest.NewMachine(t, 1)
		px, pdy, py, pdx, mean, inv := m.F32(x...), m.F32(dy...), m.Bytes(4*d), m.Bytes(4*d), m.Bytes(4), m.Bytes(4)
		Forward(m.Queue, ForwardArgs{X: px, Y: py, Mean: mean, Inv: inv, Rows: 1, D: d, Eps: 1e-5})
		Backward(m.Queue, BackwardArgs{X: px, DY: pdy, Mean: mean, Inv: inv, DX: pdx, Rows: 1, D: d, Eps: 1e-5})
		m.Sync()
		return m.ReadF32(py, d), m.ReadF32(pdx, d)
	}
	y0, dx0 := run(near)
	y1, dx1 := run(far)
	// The mean of a far row is rounded to 2^-12, half of it away at most.
	for name, pair := range map[string][2][]float32{"y": {y1, y0}, "dx": {dx1, dx0}} {
		want := make([]float64, d)
		for i, x := range pair[1] {
			want[i] = float64(x)
		}
		optest.Compare(t, name, pair[0], want, 1e-4)
	}
}
