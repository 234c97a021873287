package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRouting: a line counts for all steps since the one before, in the tenth where it ends.
func TestRouting(t *testing.T) {
	var b strings.Builder
	for step := 10; step <= 200; step += 10 {
		mean, starved, dropped := 1.0, 0, 0.0
		if step <= 20 {
			mean, starved, dropped = 0.5, 2, 0.25
		}
		fmt.Fprintf(&b, `{"step":%d,"layers":[{"mean":%g,"usage":[0.1,0.2,0.3,0.4],"starved":%d,"dropped":%g,"max_vio":0.5,"cv":0.25,"none":0.125}]}`+"\n", step, mean, starved, dropped)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "moe.jsonl"), []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	r := result{Steps: 200}
	if err := routing(dir, &r); err != nil {
		t.Fatal(err)
	}
	ones := slices.Repeat([]float64{1}, 9)
	zeros := make([]float64, 9)
	if !slices.Equal(r.Usage, append([]float64{0.5}, ones...)) || !slices.Equal(r.Starved, append([]float64{0.5}, zeros...)) || !slices.Equal(r.Dropped, append([]float64{0.25}, zeros...)) {
		t.Errorf("usage %v, starved %v, dropped %v", r.Usage, r.Starved, r.Dropped)
	}
	if r.Fan != 0.95 || r.MaxVio != 0.5 || r.CV != 0.25 || r.None != 0.125 {
		t.Errorf("%+v", r)
	}
	if err := routing(t.TempDir(), &result{}); err != nil {
		t.Errorf("a dense run has no lines about routers: %v", err)
	}
}

// TestPaired holds an interval to one worked out by hand: differences of 1, 2 and 3 have a mean of 2, a
// deviation of 1, and 4.303 / sqrt(3) on either side.
func TestPaired(t *testing.T) {
	a := map[int64]float64{1: 2, 2: 4, 3: 6, 4: 100}
	b := map[int64]float64{1: 1, 2: 2, 3: 3, 5: 100}
	diff, half, n := paired(a, b)
	if math.Abs(diff-2) > 1e-12 || math.Abs(half-4.303/math.Sqrt(3)) > 1e-12 || n != 3 {
		t.Errorf("%g ± %g of %d", diff, half, n)
	}
}

// TestCurves: arms stand less the first one, over the seeds that both have.
func TestCurves(t *testing.T) {
	at := func(x float64) []float64 { return slices.Repeat([]float64{x}, stretches) }
	m := &manifest{Arms: []arm{{Name: "dense"}, {Name: "topk"}, {Name: "none done"}}}
	text := curves(m, []result{
		{Arm: "dense", Seed: 1, Curve: at(3)},
		{Arm: "topk", Seed: 1, Curve: at(2.75), Usage: at(1)},
		{Arm: "topk", Seed: 2, Curve: at(9), Usage: at(0.5)},
	})
	for _, want := range []string{"| dense |" + strings.Repeat(" 3.000 |", stretches), "| topk |" + strings.Repeat(" -0.250 |", stretches), "| topk |" + strings.Repeat(" 0.75 |", stretches)} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "none done") {
		t.Errorf("an arm without runs:\n%s", text)
	}
}
