package linear

import (
	"slices"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/gelu"
	"github.com/megatrain/mtc/runtime/ops/optest"
)

// TestGelu: the fused launches give what the two launches give that they stand for, with and
// without the sums kept: on a processor, and where kernels follow the product, to the bit.
func TestGelu(t *testing.T) {
	t.Run("cpu", func(t *testing.T) {
		fusedGelu(t, func() *optest.Machine { return optest.NewMachine(t, 2) })
	})
	optest.OnGPU(t, func(t *testing.T, f32 bool) {
		fusedGelu(t, func() *optest.Machine { return optest.GPU(t, f32) })
	})
}

func fusedGelu(t *testing.T, machine func() *optest.Machine) {
	const rows, in, out = 37, 24, 40
	x, w, b, dy, w2 := numbers(rows*in, 1), numbers(out*in, 2), numbers(out, 3), numbers(rows*in, 4), numbers(in*out, 5)
	type results struct{ pre, y, dx []float32 }
	run := func(fused, keep bool) (r results) {
		m := machine()
		px, pw, pb, pdy, pw2 := m.Act(x...), m.Act(w...), m.Act(b...), m.Act(dy...), m.Act(w2...)
		wide := rows * out * m.ActSize()
		pre, y, d, dx := m.Bytes(wide), m.Bytes(wide), m.Bytes(wide), m.Bytes(wide)
		forward := ForwardArgs{X: px, Weight: pw, Bias: pb, Y: pre, Rows: rows, In: in, Out: out}
		if fused {
			kept := pre
			if !keep {
				kept = device.Ptr{}
				Forward(m.Queue, forward)
			}
			ForwardGelu(m.Queue, ForwardGeluArgs{X: px, Weight: pw, Bias: pb, Pre: kept, Y: y, Rows: rows, In: in, Out: out})
			BackwardInputGelu(m.Queue, BackwardInputGeluArgs{Weight: pw2, DY: pdy, Pre: pre, DX: dx, Rows: rows, In: out, Out: in})
		} else {
			Forward(m.Queue, forward)
			gelu.Forward(m.Queue, gelu.ForwardArgs{X: pre, Y: y, Rows: rows, D: out})
			BackwardInput(m.Queue, BackwardInputArgs{Weight: pw2, DY: pdy, DX: d, Rows: rows, In: out, Out: in})
			gelu.Backward(m.Queue, gelu.BackwardArgs{X: pre, DY: d, DX: dx, Rows: rows, D: out})
		}
		m.Sync()
		return results{m.ReadAct(pre, rows*out), m.ReadAct(y, rows*out), m.ReadAct(dx, rows*out)}
	}
	want := run(false, true)
	for _, keep := range []bool{true, false} {
		got := run(true, keep)
		for _, c := range []struct {
			name      string
			got, want []float32
		}{{"pre", got.pre, want.pre}, {"y", got.y, want.y}, {"d.x", got.dx, want.dx}} {
			wide := make([]float64, len(c.want))
			for i, v := range c.want {
				wide[i] = float64(v)
			}
			// A library rounds once where two launches round twice.
			optest.Compare(t, c.name, c.got, wide, 1.0/64)
			if slices.Equal(c.got, c.want) {
				t.Logf("%s: the same bits", c.name)
			}
		}
	}
}
