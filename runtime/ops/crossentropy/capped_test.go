package crossentropy

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/ops/softcap"
	"github.com/megatrain/mtc/runtime/plan"
)

// cappedShapes are rows that a block keeps whole, in one way or another, and rows that it does not.
var cappedShapes = []struct{ rows, v, pitch int }{{19, 517, 0}, {5, 3000, 3008}, {7, 8200, 0}, {40, 9001, 9024}, {3, 60008, 0}, {2, 160011, 0}}

// TestCappedCPU: a soft cap in the loss has the bits of the op before and behind it.
func TestCappedCPU(t *testing.T) {
	for _, c := range cappedShapes {
		logits, targets := sample(c.rows, c.v)
		for _, threads := range []int{1, 2} {
			m := optest.NewMachine(t, threads)
			x, d := m.F32(logits...), m.F32(logits...)
			step := make([]float64, plan.NumScalars)
			step[plan.ScalarInvTokens] = 0.25
			scalars, ids := m.F64(step...), m.I32(targets...)
			want, got, eval := m.F64(0, 0), m.F64(0, 0), m.F64(0, 0)
			n := int64(len(logits))
			y := m.F32(make([]float32, n)...)
			softcap.Forward(m.Queue, softcap.ForwardArgs{X: x, Y: y, Rows: c.rows, D: c.v, Cap: 3})
			dy := m.F32(make([]float32, n)...)
			Loss(m.Queue, LossArgs{Logits: y, Targets: ids, Scalars: scalars, DLogits: dy, Partials: want, Rows: c.rows, V: c.v})
			softcap.Backward(m.Queue, softcap.BackwardArgs{Y: y, DY: dy, DX: dy, Rows: c.rows, D: c.v, Cap: 3})
			Eval(m.Queue, EvalArgs{Logits: x, Targets: ids, Partials: eval, Rows: c.rows, V: c.v, Cap: 3})
			Loss(m.Queue, LossArgs{Logits: d, Targets: ids, Scalars: scalars, DLogits: d, Partials: got, Rows: c.rows, V: c.v, Cap: 3})
			m.Sync()
			if w, g := m.ReadF64(want, 2), m.ReadF64(got, 2); !slices.Equal(w, g) {
				t.Errorf("%d rows of %d: partials %v, want %v", c.rows, c.v, g, w)
			}
			if w, g := m.ReadF64(want, 2), m.ReadF64(eval, 2); math.Abs(w[0]-g[0]) > 1e-6*w[0] || w[1] != g[1] {
				t.Errorf("%d rows of %d: Eval gives %v, Loss %v", c.rows, c.v, g, w)
			}
			if !slices.Equal(m.ReadF32(dy, n), m.ReadF32(d, n)) {
				t.Errorf("%d rows of %d: other bits of the gradient", c.rows, c.v)
			}
		}
	}
}

// TestCappedCUDA: loss and gradient of capped logits as on the CPU; the same bits in chunks.
func TestCappedCUDA(t *testing.T) {
	const limit = 5
	optest.OnGPU(t, func(t *testing.T, f32 bool) {
		for _, c := range cappedShapes {
			t.Run(fmt.Sprintf("%d rows of %d in %d", c.rows, c.v, c.pitch), func(t *testing.T) {
				logits, targets := sample(c.rows, c.v)
				if !f32 {
					logits = optest.RoundBF16(logits)
				}
				width := max(c.pitch, c.v)
				loss, grad := 0.0, make([]float64, c.rows*width)
				for r, target := range targets {
					if target < 0 {
						continue
					}
					row, top, sum := logits[r*c.v:][:c.v], math.Inf(-1), 0.0
					z := make([]float64, c.v)
					for i, x := range row {
						z[i] = limit * math.Tanh(float64(x)/limit)
						top = max(top, z[i])
					}
					for _, x := range z {
						sum += math.Exp(x - top)
					}
					loss += top + math.Log(sum) - z[target]
					for i, x := range z {
						g := math.Exp(x-top) / sum
						if i == int(target) {
							g--
						}
						grad[r*width+i] = 0.25 * g * (1 - x/limit*x/limit)
					}
				}
				run := func(chunk int) (partials, eval []float64, d []float32) {
					m := optest.GPU(t, f32)
					spread := make([]float32, c.rows*width)
					for r := range c.rows {
						copy(spread[r*width:], logits[r*c.v:][:c.v])
					}
					scalars := make([]float64, plan.NumScalars)
					scalars[plan.ScalarInvTokens] = 0.25
					x, ids, s, p, e := m.Act(spread...), m.I32(targets...), m.F64(scalars...), m.F64(0, 0), m.F64(0, 0)
					Eval(m.Queue, EvalArgs{Logits: x, Targets: ids, Partials: e, Rows: c.rows, V: c.v, Pitch: c.pitch, Cap: limit})
					for r := 0; r < c.rows; r += chunk {
						at := x.At(int64(r*width) * m.ActSize())
						Loss(m.Queue, LossArgs{Logits: at, Targets: ids.At(int64(4 * r)), Scalars: s, DLogits: at, Partials: p,
							Rows: min(chunk, c.rows-r), V: c.v, Pitch: c.pitch, Cap: limit})
					}
					m.Sync()
					return m.ReadF64(p, 2), m.ReadF64(e, 2), m.ReadAct(x, int64(len(spread)))
				}
				p, e, d := run(c.rows)
				tol, lossTol := 1e-5, 1e-6
				if !f32 {
					tol, lossTol = 1.5e-2, 1e-3 // logits are rounded once more
				}
				optest.Compare(t, "d.logits", d, grad, tol)
				for _, got := range []float64{p[0], e[0]} {
					if math.Abs(got-loss) > lossTol*loss {
						t.Errorf("losses %v and %v, want %v", p[0], e[0], loss)
					}
				}
				if _, _, again := run(3); !slices.Equal(again, d) {
					t.Error("chunks of 3 rows: other bits")
				}
			})
		}
	})
}

// TestCappedTakesNoMemory: a row's blocks are not made anew for each row, which cost more than the row.
func TestCappedTakesNoMemory(t *testing.T) {
	row, d := make([]float32, 3000), make([]float32, 3000)
	for name, f := range map[string]func(){
		"gradient": func() { cappedGradient(d, row, 1, 15, 1) },
		"loss":     func() { cappedLoss(row, 1, 15) },
	} {
		if n := testing.AllocsPerRun(100, f); n >= 1 {
			t.Errorf("%s: %g allocations a row", name, n)
		}
	}
}
