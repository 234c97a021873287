package crossentropy

import (
	"slices"
	"testing"

	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/plan"
)

// TestPitch: rows that lie apart have the bits of dense rows, in place too, and the gaps are
// left alone.
func TestPitch(t *testing.T) {
	t.Run("cpu", func(t *testing.T) {
		pitched(t, func() *optest.Machine { return optest.NewMachine(t, 2) }, true)
	})
	optest.OnGPU(t, func(t *testing.T, f32 bool) {
		pitched(t, func() *optest.Machine { return optest.GPU(t, f32) }, f32)
	})
}

func pitched(t *testing.T, machine func() *optest.Machine, f32 bool) {
	const rows, v, pitch, gap = 19, 517, 576, -77
	logits, targets := sample(rows, v)
	if !f32 {
		logits = optest.RoundBF16(logits)
	}
	scalars := make([]float64, plan.NumScalars)
	scalars[plan.ScalarInvTokens] = 0.25
	run := func(width int) (partials, evaluated []float64, d []float32) {
		m := machine()
		spread := make([]float32, rows*width)
		for i := range spread {
			spread[i] = gap
			if x := i % width; x < v {
				spread[i] = logits[i/width*v+x]
			}
		}
		given := 0
		if width != v {
			given = width
		}
		l, p, e := m.Act(spread...), m.F64(0, 0), m.F64(0, 0)
		ids := m.I32(targets...)
		Eval(m.Queue, EvalArgs{Logits: l, Targets: ids, Partials: e, Rows: rows, V: v, Pitch: given})
		Loss(m.Queue, LossArgs{Logits: l, Targets: ids, Scalars: m.F64(scalars...), DLogits: l, Partials: p, Rows: rows, V: v, Pitch: given})
		m.Sync()
		for r, all := 0, m.ReadAct(l, int64(rows*width)); r < rows; r++ {
			d = append(d, all[r*width:][:v]...)
			if slices.ContainsFunc(all[r*width+v:(r+1)*width], func(x float32) bool { return x != 0 }) {
				t.Fatalf("row %d: the gap of the gradient is not zero", r)
			}
		}
		return m.ReadF64(p, 2), m.ReadF64(e, 2), d
	}
	partials, evaluated, d := run(v)
	p, e, dp := run(pitch)
	if !slices.Equal(p, partials) || !slices.Equal(e, evaluated) || !slices.Equal(dp, d) {
		t.Errorf("rows %d apart: partials %v and %v, want %v and %v; same gradients: %t", pitch, p, e, partials, evaluated, slices.Equal(dp, d))
	}
}
