package telemetry

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/megatrain/mtc/runtime/fault"
)

func write(t *testing.T, path string, done int64, steps ...int64) {
	t.Helper()
	m, err := OpenMetrics(path, done, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if err := m.Step(Step{Step: s, Loss: 1 / float64(s), LR: 6e-4, GradNorm: 2.5, Tokens: 100 * s, Count: 100, Seconds: 0.25}); err != nil {
			t.Fatal(err)
		}
		if s%2 == 0 {
			if err := m.Eval(Eval{Step: s, Loss: 2, Tokens: 50, Seconds: 0.5}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func TestMetricsLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "m.jsonl")
	write(t, path, 0, 1, 2, 3)
	want := []string{
		`{"step":1,"loss":1,"lr":0.0006,"grad_norm":2.5,"tokens":100,"tokens_per_s":400,"ms":250}`,
		`{"step":2,"loss":0.5,"lr":0.0006,"grad_norm":2.5,"tokens":200,"tokens_per_s":400,"ms":250}`,
		`{"step":2,"eval_loss":2,"tokens":50,"ms":500}`,
		`{"step":3,"loss":0.3333333333333333,"lr":0.0006,"grad_norm":2.5,"tokens":300,"tokens_per_s":400,"ms":250}`,
	}
	if d := cmp.Diff(want, lines(t, path)); d != "" {
		t.Error(d)
	}
}

func TestNonFiniteValuesAreNull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.jsonl")
	m, err := OpenMetrics(path, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Step(Step{Step: 1, Loss: math.NaN(), GradNorm: math.Inf(1), Skipped: true}); err != nil {
		t.Fatal(err)
	}
	if err := m.Eval(Eval{Step: 1, Loss: math.Inf(-1)}); err != nil {
		t.Fatal(err)
	}
	m.Close()
	want := []string{
		`{"step":1,"loss":null,"lr":0,"grad_norm":null,"tokens":0,"tokens_per_s":0,"ms":0,"skipped":true,"non_finite":true}`,
		`{"step":1,"eval_loss":null,"tokens":0,"ms":0,"non_finite":true}`,
	}
	got := lines(t, path)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, l := range got {
		if !json.Valid([]byte(l)) {
			t.Errorf("not JSON: %s", l)
		}
	}
}

func TestResumedMetricsGoOnAfterTheResumedStep(t *testing.T) {
	dir := t.TempDir()
	whole, path := filepath.Join(dir, "whole"), filepath.Join(dir, "m.jsonl")
	write(t, whole, 0, 1, 2, 3, 4, 5, 6)
	write(t, path, 0, 1, 2, 3, 4, 5)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"step":6,"lo`); err != nil { // torn by a crash
		t.Fatal(err)
	}
	f.Close()
	write(t, path, 4, 5, 6)
	if d := cmp.Diff(lines(t, whole), lines(t, path)); d != "" {
		t.Error(d)
	}
	write(t, path, 0, 1) // a fresh run starts empty
	if n := len(lines(t, path)); n != 1 {
		t.Errorf("%d lines after a fresh start", n)
	}
}

func TestFilesThatAreNotMetricsAreLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.txt")
	for _, notes := range []string{"my notes\n", "my notes"} {
		for _, done := range []int64{0, 3} {
			if err := os.WriteFile(path, []byte(notes), 0o666); err != nil {
				t.Fatal(err)
			}
			_, err := OpenMetrics(path, done, false)
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != "MT0627" || !strings.Contains(f.Hint, "--metrics") {
				t.Errorf("%q, step %d: got %v", notes, done, err)
			}
			if text, _ := os.ReadFile(path); string(text) != notes {
				t.Errorf("%q, step %d: the file is now %q", notes, done, text)
			}
		}
	}
}

func TestMetricsIntoADevice(t *testing.T) {
	if _, err := os.Stat("/dev/null"); err != nil {
		t.Skip("no /dev/null here")
	}
	write(t, "/dev/null", 0, 1)
	write(t, "/dev/null", 4, 5)
}

func TestMetricsFolderThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	var f *fault.Error
	if _, err := OpenMetrics(filepath.Join(file, "m"), 0, false); !errors.As(err, &f) || f.Code != "MT0627" {
		t.Errorf("got %v", err)
	}
}

// TestEvaluationsThatAreOwedAreCut: an evaluation that a resumed run makes first stands once in the
// metrics, also where a run that was killed after it had made it before.
func TestEvaluationsThatAreOwedAreCut(t *testing.T) {
	const step1, step2, eval1, null2 = `{"step":1,"loss":2}` + "\n", `{"step":2,"loss":2}` + "\n",
		`{"step":1,"eval_loss":3}` + "\n", `{"step":2,"eval_loss":null,"non_finite":true}` + "\n"
	for _, c := range []struct {
		name, had string
		done      int64
		owed      bool
		want      string
	}{
		{"done", step1 + eval1 + step2 + null2, 2, false, step1 + eval1 + step2 + null2},
		{"owed and made", step1 + eval1 + step2 + null2, 2, true, step1 + eval1 + step2},
		{"owed and made, then a step", step1 + eval1 + step2, 1, true, step1},
		{"owed and not made", step1 + eval1 + step2, 2, true, step1 + eval1 + step2},
	} {
		path := filepath.Join(t.TempDir(), "m.jsonl")
		if err := os.WriteFile(path, []byte(c.had), 0o666); err != nil {
			t.Fatal(err)
		}
		m, err := OpenMetrics(path, c.done, c.owed)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%swant\n%s", c.name, err, got, c.want)
		}
	}
}
