package linear

import (
	"slices"
	"testing"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/tensor"
)

func TestLinear(t *testing.T) {
	in := []tensor.Type{optest.F32(10)}
	out := op.Value{Kind: op.VInt, Int: 7, Dim: "F"}
	// 6 rows, a 7 x 10 weight: 2*6*7*10 = 840 operations. In bytes x is 240, weight 280, y 168.
	grads := map[string]op.Cost{
		"Forward":        {FLOPs: 840, Bytes: 688},
		"BackwardInput":  {FLOPs: 840, Bytes: 688},
		"BackwardWeight": {FLOPs: 840, Bytes: 688},
	}
	optest.Run(t, optest.Case{
		Def: Def,
		Funcs: map[string]any{
			"Forward": Forward, "BackwardInput": BackwardInput,
			"BackwardWeight": BackwardWeight, "BackwardBias": BackwardBias,
		},
		Good: []optest.Good{{
			Name: "plain", In: in, Attr: map[string]op.Value{"out": out},
			Out: "[B, T, F = 7]", Batch: 2, Seq: 3, Cost: grads, Ref: reference,
		}, {
			Name: "bias", In: in, Attr: map[string]op.Value{"out": out, "bias": *op.BoolValue(true)},
			Out: "[B, T, F = 7]", Batch: 2, Seq: 3, Ref: reference,
			// The bias adds 42 operations and 28 bytes.
			Cost: map[string]op.Cost{
				"Forward":        {FLOPs: 882, Bytes: 716},
				"BackwardInput":  grads["BackwardInput"],
				"BackwardWeight": grads["BackwardWeight"],
				"BackwardBias":   {FLOPs: 42, Bytes: 196},
			},
		}},
		Wide: []optest.Good{
			{Name: "wide", In: []tensor.Type{optest.F32(24)}, Attr: map[string]op.Value{"out": *op.IntValue(272), "bias": *op.BoolValue(true)}, Batch: 2, Seq: 97},
			{Name: "wide bias", In: []tensor.Type{optest.F32(8)}, Attr: map[string]op.Value{"out": *op.IntValue(2120), "bias": *op.BoolValue(true)}, Batch: 2, Seq: 151},
			{Name: "wide odd", In: []tensor.Type{optest.F32(5)}, Attr: map[string]op.Value{"out": *op.IntValue(517), "bias": *op.BoolValue(true)}, Batch: 1, Seq: 67},
		},
		Bad: []optest.Bad{
			{Name: "no width", In: in, Attr: map[string]op.Value{"out": *op.IntValue(0)}, Arg: "out", Want: "positive"},
			{Name: "a width beyond memory", In: in, Attr: map[string]op.Value{"out": *op.IntValue(1 << 62)}, Arg: "out", Want: "2^60"},
			{Name: "ids", In: []tensor.Type{optest.Ids()}, Attr: map[string]op.Value{"out": out}, Arg: "x", Want: "i32[B, T]"},
		},
	})
}

// TestPitch: rows of y that lie apart give what dense rows give, and the gaps are left alone.
func TestPitch(t *testing.T) {
	t.Run("cpu", func(t *testing.T) {
		pitched(t, func() *optest.Machine { return optest.NewMachine(t, 2) }, 0)
	})
	optest.OnGPU(t, func(t *testing.T, f32 bool) {
		tol := 1e-5
		if !f32 {
			tol = 1.0 / 128
		}
		pitched(t, func() *optest.Machine { return optest.GPU(t, f32) }, tol)
	})
}

func pitched(t *testing.T, machine func() *optest.Machine, tol float64) {
	const rows, in, out, gap = 37, 16, 41, 7
	x, w, b := numbers(rows*in, 1), numbers(out*in, 2), numbers(out, 3)
	gaps := make([]float32, rows*(out+gap))
	for i := range gaps {
		gaps[i] = -77
	}
	run := func(pitch int) (all [4][]float32) {
		m := machine()
		px, pw, pb := m.Act(x...), m.Act(w...), m.Act(b...)
		width := out
		if pitch > 0 {
			width = pitch
		}
		y := m.Act(gaps[:rows*width]...)
		dx, dw, db := m.Bytes(rows*in*m.ActSize()), m.Bytes(out*in*4), m.Bytes(out*4)
		Forward(m.Queue, ForwardArgs{X: px, Weight: pw, Bias: pb, Y: y, Rows: rows, In: in, Out: out, Pitch: pitch})
		BackwardInput(m.Queue, BackwardInputArgs{Weight: pw, DY: y, DX: dx, Rows: rows, In: in, Out: out, Pitch: pitch})
		BackwardWeight(m.Queue, BackwardWeightArgs{X: px, DY: y, DWeight: dw, Rows: rows, In: in, Out: out, Pitch: pitch})
		BackwardBias(m.Queue, BackwardBiasArgs{DY: y, DBias: db, Rows: rows, In: in, Out: out, Pitch: pitch})
		m.Sync()
		spread := m.ReadAct(y, int64(rows*width))
		var dense []float32
		for r := range rows {
			dense = append(dense, spread[r*width:][:out]...)
			for _, v := range spread[r*width+out : (r+1)*width] {
				if v != -77 {
					t.Fatalf("row %d: a gap was written over", r)
				}
			}
		}
		return [4][]float32{dense, m.ReadAct(dx, rows*in), m.ReadF32(dw, out*in), m.ReadF32(db, out)}
	}
	want, got := run(0), run(out+gap)
	for i, name := range []string{"y", "d.x", "d.weight", "d.bias"} {
		wide := make([]float64, len(want[i]))
		for k, v := range want[i] {
			wide[k] = float64(v)
		}
		optest.Compare(t, name, got[i], wide, tol)
	}
}

// TestWide: spare rows of zeros in the weight change nothing, and have a gradient of zero.
func TestWide(t *testing.T) {
	optest.OnGPU(t, func(t *testing.T, f32 bool) {
		const rows, in, out, wide = 37, 16, 41, 48
		x, w, dy := numbers(rows*in, 1), numbers(out*in, 2), numbers(rows*out, 3)
		run := func(width int) (all [3][]float32) {
			m := optest.GPU(t, f32)
			px, pw := m.Act(x...), m.Act(append(slices.Clone(w), make([]float32, (width-out)*in)...)...)
			apart := make([]float32, rows*width)
			for r := range rows {
				copy(apart[r*width:], dy[r*out:][:out])
			}
			y, pdy := m.Bytes(int64(rows*width)*m.ActSize()), m.Act(apart...)
			dx, dw := m.Bytes(rows*in*m.ActSize()), m.Bytes(int64(width)*in*4)
			Forward(m.Queue, ForwardArgs{X: px, Weight: pw, Y: y, Rows: rows, In: in, Out: out, Pitch: width, Wide: width})
			BackwardInput(m.Queue, BackwardInputArgs{Weight: pw, DY: pdy, DX: dx, Rows: rows, In: in, Out: out, Pitch: width, Wide: width})
			BackwardWeight(m.Queue, BackwardWeightArgs{X: px, DY: pdy, DWeight: dw, Rows: rows, In: in, Out: out, Pitch: width, Wide: width})
			m.Sync()
			for r, v := 0, m.ReadAct(y, int64(rows*width)); r < rows; r++ {
				all[0] = append(all[0], v[r*width:][:out]...)
			}
			dws := m.ReadF32(dw, int64(width)*in)
			if slices.ContainsFunc(dws[out*in:], func(v float32) bool { return v != 0 }) {
				t.Error("the spare rows have a gradient")
			}
			all[1], all[2] = m.ReadAct(dx, rows*in), dws[:out*in]
			return all
		}
		want, got := run(out), run(wide)
		tol := 1e-5
		if !f32 {
			tol = 1.0 / 128
		}
		for i, name := range []string{"y", "d.x", "d.weight"} {
			exact := make([]float64, len(want[i]))
			for k, v := range want[i] {
				exact[k] = float64(v)
			}
			optest.Compare(t, name, got[i], exact, tol)
		}
	})
}

// numbers are n different numbers that bf16 holds.
func numbers(n, seed int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32((i*37+seed*11)%29-14) / 16
	}
	return v
}

func reference(v optest.Values) []float64 {
	x, weight, bias := v.F["x"], v.F["weight"], v.F["bias"]
	y := make([]float64, v.Batch*v.Seq*7)
	for i := range y {
		r, o := i/7, i%7
		if bias != nil {
			y[i] = bias[o]
		}
		for k := range 10 {
			y[i] += x[r*10+k] * weight[o*10+k]
		}
	}
	return y
}
