package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler"
)

// curve is where the golden loss curve of nano is.
var curve = filepath.Join("testdata", "nano-curve.jsonl")

// point is what the golden keeps of a step or an evaluation.
type point struct {
	Step     int64    `json:"step"`
	Loss     *float64 `json:"loss,omitempty"`
	GradNorm *float64 `json:"grad_norm,omitempty"`
	EvalLoss *float64 `json:"eval_loss,omitempty"`
}

// The first 20 steps of models/nano.mt on a fixed text give the losses and norms on record. The
// tolerance leaves room for the order of sums, which differs with the processor's vector width,
// and for what 20 steps make of that; a change of init, data order, schedule or any formula shows.
func TestLossCurveOfNano(t *testing.T) {
	binary, _ := build(t, compiler.Options{Path: filepath.Join("..", "models", "nano.mt"), Set: []string{"train.batch = 1024 tokens", "train.seq = 128"}})
	dir := t.TempDir()
	text, held := filepath.Join(dir, "train.txt"), filepath.Join(dir, "eval.txt")
	for path, content := range map[string]string{text: program(1, 60_000), held: program(2, 4_000)} {
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "run")
	run(t, binary, "--data", text, "--eval-data", held, "--steps", "20", "--eval-every", "10", "--seed", "1337", "--out", out,
		"--set", "train.lr=cosine(peak = 1e-3, warmup = 10, final = 1e-4)")
	got := readCurve(t, filepath.Join(out, "metrics.jsonl"))
	if os.Getenv("MTC_UPDATE") == "1" {
		// Only a curve that is another one is written, so that two machines do not take turns.
		if old, err := os.ReadFile(curve); err != nil || len(old) == 0 || len(curveFaults(got, readCurve(t, curve))) > 0 {
			writeCurve(t, got)
		}
	}
	want := readCurve(t, curve)
	for _, f := range curveFaults(got, want) {
		t.Error(f)
	}
	if len(want) != 22 {
		t.Fatalf("%d lines on record, wanted 20 steps and 2 evaluations", len(want))
	}
	if first, last := *want[0].Loss, *want[len(want)-1].EvalLoss; math.Abs(first-math.Log(256)) > 0.2 || last > 0.75*first {
		t.Errorf("the curve on record goes from %.3f to %.3f: it should start near ln 256 and learn", first, last)
	}
}

// curveFaults says where two curves differ by more than their tolerance.
func curveFaults(got, want []point) (faults []string) {
	if len(got) != len(want) {
		return []string{fmt.Sprintf("%d lines, %d on record", len(got), len(want))}
	}
	for i := range want {
		for _, v := range []struct {
			what      string
			a, b      *float64
			tolerance float64
		}{
			{"loss", got[i].Loss, want[i].Loss, 1e-3}, {"eval_loss", got[i].EvalLoss, want[i].EvalLoss, 1e-3},
			{"grad_norm", got[i].GradNorm, want[i].GradNorm, 1e-2},
		} {
			switch {
			case (v.a == nil) != (v.b == nil) || got[i].Step != want[i].Step:
				return append(faults, fmt.Sprintf("line %d is of another kind", i+1))
			case v.a != nil && !(math.Abs(*v.a-*v.b) <= v.tolerance*math.Abs(*v.b)):
				faults = append(faults, fmt.Sprintf("step %d: %s is %.6f, on record %.6f", want[i].Step, v.what, *v.a, *v.b))
			}
		}
	}
	return faults
}

func readCurve(t *testing.T, path string) []point {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []point
	for s := bufio.NewScanner(f); s.Scan(); {
		var p point
		if err := json.Unmarshal(s.Bytes(), &p); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, p)
	}
	return out
}

// writeCurve keeps four decimals, so that the golden is the same on machines that differ by less.
func writeCurve(t *testing.T, points []point) {
	t.Helper()
	var b strings.Builder
	for _, p := range points {
		for _, v := range []*float64{p.Loss, p.GradNorm, p.EvalLoss} {
			if v != nil {
				*v = math.Round(*v*1e4) / 1e4
			}
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(text, '\n'))
	}
	if err := os.WriteFile(curve, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

// program makes text with the look of code, always the same for a seed.
func program(seed uint64, size int) string {
	rng := rand.New(rand.NewPCG(seed, 7))
	words := strings.Fields("count index value node left right total list buffer name key size next line text step")
	word := func() string { return words[rng.IntN(len(words))] }
	var b strings.Builder
	for b.Len() < size {
		fmt.Fprintf(&b, "func %s%s(%s int) int {\n", word(), strings.ToUpper(word()[:1]), word())
		for range 1 + rng.IntN(4) {
			switch rng.IntN(3) {
			case 0:
				fmt.Fprintf(&b, "\t%s := %s + %d\n", word(), word(), rng.IntN(100))
			case 1:
				fmt.Fprintf(&b, "\tif %s > %s {\n\t\treturn %s\n\t}\n", word(), word(), word())
			default:
				fmt.Fprintf(&b, "\tfor range %s {\n\t\t%s++\n\t}\n", word(), word())
			}
		}
		fmt.Fprintf(&b, "\treturn %s\n}\n\n", word())
	}
	return b.String()
}
