package crossentropy

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/tensor"
)

func TestDeclaration(t *testing.T) {
	optest.CheckDef(t, Def)
	c, err := optest.Bind(Def, []tensor.Type{optest.F32(10), optest.Ids()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// 6 rows of 10 logits: 240 bytes, targets 24.
	s := op.Sizes{Batch: 2, Seq: 3}
	for fn, want := range map[string]op.Cost{"Eval": {FLOPs: 240, Bytes: 264}, "Loss": {FLOPs: 360, Bytes: 504}} {
		if got := Def.ByName(fn).Cost(c, s); got != want {
			t.Errorf("%s costs %+v, by hand %+v", fn, got, want)
		}
	}
	for name, in := range map[string][]tensor.Type{
		"targets": {optest.F32(10), optest.F32(10)},
		"logits":  {optest.Ids(), optest.Ids()},
	} {
		_, err := optest.Bind(Def, in, nil)
		if arg, ok := err.(*op.ArgError); !ok || arg.Arg != name {
			t.Errorf("wanted an error about %s, got %v", name, err)
		}
	}
}

// outcome is what a loss leaves.
type outcome struct {
	partials []float64
	dlogits  []float32
}

// run computes the loss over chunks of rows.
func run(t *testing.T, threads int, logits []float32, targets []int32, inv float64, chunk int, inPlace bool) outcome {
	t.Helper()
	rows := len(targets)
	v := len(logits) / rows
	m := optest.NewMachine(t, threads)
	scalars := make([]float64, plan.NumScalars)
	scalars[plan.ScalarInvTokens] = inv
	pl, pt, ps, partials := m.F32(logits...), m.I32(targets...), m.F64(scalars...), m.F64(0, 0)
	pd := pl
	if !inPlace {
		pd = m.Bytes(int64(len(logits)) * 4)
	}
	evaluated := m.F64(0, 0)
	Eval(m.Queue, EvalArgs{Logits: pl, Targets: pt, Partials: evaluated, Rows: rows, V: v})
	for r := 0; r < rows; r += chunk {
		off := int64(r * v * 4)
		Loss(m.Queue, LossArgs{Logits: pl.At(off), Targets: pt.At(int64(r) * 4), Scalars: ps, DLogits: pd.At(off),
			Partials: partials, Rows: min(chunk, rows-r), V: v})
	}
	m.Sync()
	o := outcome{m.ReadF64(partials, 2), m.ReadF32(pd, int64(len(logits)))}
	e := m.ReadF64(evaluated, 2)
	if d := math.Abs(e[0] - o.partials[0]); e[1] != o.partials[1] || d > 1e-6*math.Abs(e[0]) {
		t.Errorf("Eval gives %v, Loss %v", e, o.partials)
	}
	return o
}

func TestAgainstTorch(t *testing.T) {
	var f struct {
		Logits  []float32
		Targets []int32
		Loss    float64
		DLogits []float64
	}
	text, err := os.ReadFile("testdata/torch.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	tokens := 0.0
	for _, x := range f.Targets {
		if x >= 0 {
			tokens++
		}
	}
	o := run(t, 2, f.Logits, f.Targets, 1/tokens, len(f.Targets), false)
	optest.Compare(t, "loss", []float32{float32(o.partials[0] / o.partials[1])}, []float64{f.Loss}, 1e-6)
	optest.Compare(t, "d.logits", o.dlogits, f.DLogits, 1e-6)
	if o.partials[1] != tokens {
		t.Errorf("%v targets, want %v", o.partials[1], tokens)
	}
}

// sample makes rows of logits whose targets are sometimes ignored.
func sample(rows, v int) (logits []float32, targets []int32) {
	logits, targets = make([]float32, rows*v), make([]int32, rows)
	x := uint32(1)
	for i := range logits {
		x = x*1664525 + 1013904223
		logits[i] = float32(x>>8)/(1<<24)*8 - 4
	}
	for r := range targets {
		x = x*1664525 + 1013904223
		targets[r] = int32(x>>8)%int32(v+1) - 1
	}
	return logits, targets
}

// TestGradient: central differences of the float64 loss.
func TestGradient(t *testing.T) {
	const rows, v = 5, 7
	logits, targets := sample(rows, v)
	o := run(t, 2, logits, targets, 0.25, rows, false)
	x := make([]float64, len(logits))
	for i := range x {
		x[i] = float64(logits[i])
	}
	loss := func() (sum float64) {
		for r, target := range targets {
			if target < 0 {
				continue
			}
			var z float64
			for _, l := range x[r*v : (r+1)*v] {
				z += math.Exp(l)
			}
			sum += math.Log(z) - x[r*v+int(target)]
		}
		return sum * 0.25
	}
	want := make([]float64, len(x))
	for i, at := range x {
		x[i] = at + 1e-5
		up := loss()
		x[i] = at - 1e-5
		want[i] = (up - loss()) / 2e-5
		x[i] = at
	}
	optest.Compare(t, "d.logits", o.dlogits, want, 2e-6)
	optest.Compare(t, "loss", []float32{float32(o.partials[0] * 0.25)}, []float64{loss()}, 1e-6)
}

// TestSameBits: in place or not, whole or in chunks, at any number of threads.
func TestSameBits(t *testing.T) {
	const rows, v = 137, 5000
	logits, targets := sample(rows, v)
	want := run(t, 1, logits, targets, 1, rows, false)
	for _, threads := range []int{1, 2, 7} {
		for _, chunk := range []int{1, 32, rows} {
			for _, inPlace := range []bool{false, true} {
				got := run(t, threads, logits, targets, 1, chunk, inPlace)
				if got.partials[0] != want.partials[0] || got.partials[1] != want.partials[1] {
					t.Errorf("threads %d chunk %d in place %v: partials %v, want %v", threads, chunk, inPlace, got.partials, want.partials)
				}
				for i := range want.dlogits {
					if got.dlogits[i] != want.dlogits[i] {
						t.Fatalf("threads %d chunk %d in place %v: d.logits[%d] = %v, want %v", threads, chunk, inPlace, i, got.dlogits[i], want.dlogits[i])
					}
				}
			}
		}
	}
}

// TestExtremes: logits that overflow exp, a sure hit, a sure miss, NaN that must not hide.
func TestExtremes(t *testing.T) {
	for _, c := range []struct {
		name   string
		logits []float32
		loss   float64
		grad   []float64
	}{
		{"large", []float32{1e4, 1e4, -1e4}, math.Ln2, []float64{-0.5, 0.5, 0}},
		{"sure hit", []float32{200, 0, 0}, 0, []float64{0, 0, 0}},
		{"sure miss", []float32{-3e38, 0, -3e38}, 3e38, []float64{-1, 1, 0}},
	} {
		o := run(t, 1, c.logits, []int32{0}, 1, 1, true)
		if d := math.Abs(o.partials[0] - c.loss); d > 1e-6*c.loss {
			t.Errorf("%s: loss %v, want %v", c.name, o.partials[0], c.loss)
		}
		for i, g := range c.grad {
			if math.Abs(float64(o.dlogits[i])-g) > 1e-6 {
				t.Errorf("%s: gradient %v, want %v", c.name, o.dlogits, c.grad)
			}
		}
	}
	for i := range 3 {
		logits := []float32{1, 2, 3}
		logits[i] = float32(math.NaN())
		m := optest.NewMachine(t, 1)
		partials := m.F64(0, 0)
		Eval(m.Queue, EvalArgs{Logits: m.F32(logits...), Targets: m.I32(0), Partials: partials, Rows: 1, V: 3})
		m.Sync()
		if p := m.ReadF64(partials, 2); !math.IsNaN(p[0]) {
			t.Errorf("NaN at %d gives the loss %v", i, p[0])
		}
	}
}

func TestTargetOutside(t *testing.T) {
	m := optest.NewMachine(t, 1)
	Eval(m.Queue, EvalArgs{Logits: m.F32(1, 2, 3), Targets: m.I32(3), Partials: m.F64(0, 0), Rows: 1, V: 3})
	if err := m.Err(); err == nil || !strings.Contains(err.Error(), "target 3 is outside of 3 logits") {
		t.Errorf("got %v", err)
	}
}
