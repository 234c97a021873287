package crossentropy

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/plan"
)

// TestCUDA: losses and gradients as on the CPU, at lengths that fill vectors and at those that
// do not; the same bits in place, in chunks of rows, and twice.
func TestCUDA(t *testing.T) {
	optest.OnGPU(t, func(t *testing.T, f32 bool) {
		for _, c := range []struct{ rows, v int }{{37, 16}, {19, 517}, {7, 2050}, {5, 8200}, {5, 9001}, {3, 16411}, {300, 11}, {2, 60008}, {1, 160011}} {
			t.Run(fmt.Sprintf("%d rows of %d", c.rows, c.v), func(t *testing.T) {
				logits, targets := sample(c.rows, c.v)
				if !f32 {
					logits = optest.RoundBF16(logits)
				}
				want := run(t, 2, logits, targets, 0.25, c.rows, false)
				got := onGPU(t, f32, logits, targets, c.rows, false)
				tol := 1e-5
				grad := make([]float64, len(want.dlogits))
				for i, d := range want.dlogits {
					grad[i] = float64(d)
				}
				if !f32 {
					optest.Rounded(grad, got.dlogits)
				}
				optest.Compare(t, "d.logits", got.dlogits, grad, tol)
				optest.Compare(t, "loss", []float32{float32(got.partials[0])}, []float64{want.partials[0]}, 1e-6)
				if got.partials[1] != want.partials[1] {
					t.Errorf("%v targets, want %v", got.partials[1], want.partials[1])
				}
				for _, chunk := range []int{c.rows, 1, 3, 32, 96} {
					for _, inPlace := range []bool{false, true} {
						o := onGPU(t, f32, logits, targets, chunk, inPlace)
						if !slices.Equal(o.dlogits, got.dlogits) {
							t.Errorf("chunks of %d, in place %v: other bits", chunk, inPlace)
						}
						// Losses are added by groups of 32 rows.
						if same := slices.Equal(o.partials, got.partials); !same && (chunk%32 == 0 || chunk >= c.rows) ||
							math.Abs(o.partials[0]-got.partials[0]) > 1e-12*got.partials[0] || o.partials[1] != got.partials[1] {
							t.Errorf("chunks of %d, in place %v: partials %v, want %v", chunk, inPlace, o.partials, got.partials)
						}
					}
				}
			})
		}
	})
}

// TestCUDAExtremes: logits that overflow exp, a sure hit, NaN and infinities that must not hide.
func TestCUDAExtremes(t *testing.T) {
	optest.OnGPU(t, func(t *testing.T, f32 bool) {
		inf, nan := float32(math.Inf(1)), float32(math.NaN())
		for _, c := range []struct {
			name   string
			logits []float32
			loss   float64
		}{
			{"large", []float32{1e4, 1e4, -1e4}, math.Ln2},
			{"sure hit", []float32{200, 0, 0}, 0},
			{"one", []float32{-7}, 0},
			{"all lowest", []float32{-3e38, -3e38}, math.Ln2},
			{"masked", []float32{1, -inf, -inf}, 0},
			{"not a number", []float32{1, nan, 1}, math.NaN()},
			{"infinite", []float32{1, inf, 1}, math.NaN()},
		} {
			o := onGPU(t, f32, c.logits, []int32{0}, 1, true)
			if d := math.Abs(o.partials[0] - c.loss); d > 1e-6 || math.IsNaN(c.loss) != math.IsNaN(o.partials[0]) {
				t.Errorf("%s: loss %v, want %v", c.name, o.partials[0], c.loss)
			}
		}
	})
}

// TestCUDAManyRows: blocks that take several rows, some of them without a target, give each the bits that
// it has alone, and gaps behind rows become zeros.
func TestCUDAManyRows(t *testing.T) {
	optest.OnGPU(t, func(t *testing.T, f32 bool) {
		for _, c := range []struct{ rows, v, pitch int }{{800, 8201, 8256}, {140, 57000, 57008}, {600, 8203, 8203}, {300, 8208, 8211}} {
			if f32 && c.rows < 200 {
				continue // does not fit the test's memory
			}
			logits, targets := sample(7, c.v)
			if !f32 {
				logits = optest.RoundBF16(logits)
			}
			scalars := make([]float64, plan.NumScalars)
			scalars[plan.ScalarInvTokens] = 0.25
			run := func(rows int) ([]float32, []float64) {
				m := optest.GPU(t, f32)
				all, ids := make([]float32, rows*c.pitch), make([]int32, rows)
				for r := range rows {
					copy(all[r*c.pitch:], logits[r%7*c.v:][:c.v])
					for i := c.v; i < c.pitch; i++ {
						all[r*c.pitch+i] = float32(math.NaN())
					}
					if ids[r] = targets[r%7]; r/7%5 == 4 {
						ids[r] = -100
					}
				}
				l, p := m.Act(all...), m.F64(0, 0)
				Loss(m.Queue, LossArgs{Logits: l, Targets: m.I32(ids...), Scalars: m.F64(scalars...), DLogits: l, Partials: p, Rows: rows, V: c.v, Pitch: c.pitch})
				m.Sync()
				return m.ReadAct(l, int64(len(all))), m.ReadF64(p, 2)
			}
			few, _ := run(7)
			many, partials := run(c.rows)
			zeros := make([]float32, c.pitch)
			for r := range c.rows {
				want := few[r%7*c.pitch:][:c.pitch]
				if r/7%5 == 4 {
					want = zeros
				}
				if got := many[r*c.pitch:][:c.pitch]; !slices.Equal(got, want) {
					t.Fatalf("row %d of %d of %d: other bits than alone", r, c.rows, c.v)
				}
			}
			if math.IsNaN(partials[0]) || partials[0] <= 0 {
				t.Errorf("loss %v", partials)
			}
		}
	})
}

// onGPU computes the loss over chunks of rows, with 4 tokens in the step.
func onGPU(t *testing.T, f32 bool, logits []float32, targets []int32, chunk int, inPlace bool) outcome {
	t.Helper()
	m := optest.GPU(t, f32)
	rows := len(targets)
	v := len(logits) / rows
	scalars := make([]float64, plan.NumScalars)
	scalars[plan.ScalarInvTokens] = 0.25
	pl, pt, ps, partials, evaluated := m.Act(logits...), m.I32(targets...), m.F64(scalars...), m.F64(0, 0), m.F64(0, 0)
	pd := pl
	if !inPlace {
		pd = m.Bytes(int64(len(logits)) * m.ActSize())
	}
	Eval(m.Queue, EvalArgs{Logits: pl, Targets: pt, Partials: evaluated, Rows: rows, V: v})
	for r := 0; r < rows; r += chunk {
		off := int64(r*v) * m.ActSize()
		Loss(m.Queue, LossArgs{Logits: pl.At(off), Targets: pt.At(int64(r) * 4), Scalars: ps, DLogits: pd.At(off),
			Partials: partials, Rows: min(chunk, rows-r), V: v})
	}
	m.Sync()
	o := outcome{m.ReadF64(partials, 2), m.ReadAct(pd, int64(len(logits)))}
	e := m.ReadF64(evaluated, 2)
	if d := math.Abs(e[0] - o.partials[0]); (e[1] != o.partials[1] || d > 1e-12*math.Abs(e[0])) && !math.IsNaN(e[0]) {
		t.Errorf("Eval gives %v, Loss %v", e, o.partials)
	}
	return o
}
