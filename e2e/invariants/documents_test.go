package invariants

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/runtime/data/packed"
)

// documents writes a packed folder of documents of bytes of some lengths; of every third token
// of the later half nothing is learned.
func documents(t *testing.T, lengths ...int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "packed")
	w, err := packed.Create(dir, packed.Manifest{Apart: true, Loss: "assistant", Tokenizer: packed.Tokenizer{Name: "bytes", Hash: "bytes", Vocab: 256}}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	x := uint32(1)
	for k, n := range lengths {
		tokens, learn := make([]int32, n), make([]bool, n)
		for i := range tokens {
			x = x*1664525 + 1013904223
			tokens[i] = int32('a' + x>>24%26)
			learn[i] = k*2 < len(lengths) || i%3 > 0
		}
		learn[0], learn[n-1] = false, true
		if err := w.Add(tokens, learn); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(packed.Source{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// field is a number of the metrics of a step.
func field(t *testing.T, o *outcome, line int, key string) float64 {
	t.Helper()
	var m map[string]float64
	if err := json.Unmarshal([]byte(o.lines[line]), &m); err != nil {
		t.Fatal(err)
	}
	v, ok := m[key]
	if !ok {
		t.Fatalf("%s has no %s", o.lines[line], key)
	}
	return v
}

// Documents that share rows train as the same documents in rows of their own: nothing leaks
// from one into another, positions begin anew in each, and the loss divides by the targets of
// the whole step. One step takes all documents here, so both runs see the same ones.
func TestDocumentsThatShareRows(t *testing.T) {
	t.Parallel()
	lengths := []int{17, 9, 6, 12, 2, 5, 3, 11, 8, 7, 4, 10, 13} // 94 positions: 6 rows of 16
	data := documents(t, lengths...)
	for _, family := range []string{"gpt2", "llama", "qwen", "window", "topk"} {
		t.Run(family, func(t *testing.T) {
			args := []string{"--data", data, "--steps", "1", "--set", "train.eval=none"}
			o := func(set ...string) compiler.Options {
				return compiler.Options{Set: append([]string{"train.eval=none"}, set...)}
			}
			alone := train(t, program(t, family, o("train.batch=13 rows")), out(t), args...)
			for _, c := range []compiler.Options{
				o("train.batch=6 rows", "train.documents=packed"),
				{Set: o("train.batch=6 rows", "train.documents=packed").Set, MicroBatch: 2, Placement: "stream", Recompute: "all"},
			} {
				if family == "topk" && c.MicroBatch > 0 {
					continue // its balance loss goes by micro-batch
				}
				shared := train(t, program(t, family, c), out(t), args...)
				what := fmt.Sprintf("%s %s", family, c.Placement)
				for _, key := range []string{"loss", "grad_norm"} {
					g, w := field(t, shared, 0, key), field(t, alone, 0, key)
					limit := 1e-6 * math.Abs(w)
					if !(math.Abs(g-w) <= limit) {
						t.Errorf("%s: %s is %.9g where documents share rows, %.9g alone", what, key, g, w)
					}
				}
				if g, w := field(t, shared, 0, "tokens"), field(t, alone, 0, "tokens"); g != w {
					t.Errorf("%s: %v targets, wanted %v", what, g, w)
				}
			}
		})
	}
}

// The step that an epoch ends with has the rows that are left, and counts their targets alone: it is
// the step of a batch that has just these rows, also where whole micro-batches are empty.
func TestLastStepOfAnEpoch(t *testing.T) {
	t.Parallel()
	data := documents(t, 17, 9, 6, 12, 5)
	for _, family := range []string{"gpt2", "llama", "topk"} {
		t.Run(family, func(t *testing.T) {
			o := func(batch int, c compiler.Options) compiler.Options {
				c.Set = append(c.Set, "train.eval=none", fmt.Sprintf("train.batch=%d rows", batch))
				return c
			}
			args := []string{"--data", data, "--epochs", "2", "--set", "train.eval=none"}
			full := train(t, program(t, family, o(5, compiler.Options{})), out(t), args...)
			if len(full.lines) != 2 {
				t.Fatalf("%d steps of 5 rows in 2 epochs of 5", len(full.lines))
			}
			for _, c := range []compiler.Options{o(8, compiler.Options{}), o(8, compiler.Options{MicroBatch: 1}),
				o(16, compiler.Options{MicroBatch: 4, Placement: "stream", Recompute: "all"})} {
				if family == "topk" && c.MicroBatch > 0 {
					continue // its balance loss goes by micro-batch
				}
				part := train(t, program(t, family, c), out(t), args...)
				if len(part.lines) != 2 {
					t.Fatalf("%d steps", len(part.lines))
				}
				for i, limit := range []float64{1e-6, 1e-4} {
					for _, key := range []string{"loss", "grad_norm", "tokens"} {
						g, w := field(t, part, i, key), field(t, full, i, key)
						if !(math.Abs(g-w) <= limit*math.Abs(w)) {
							t.Errorf("step %d: %s is %.9g in a part of %v, %.9g alone", i+1, key, g, c.Set, w)
						}
					}
				}
			}
			// Of 5 rows, 3 make a step and 2 the next one.
			parts := train(t, program(t, family, o(3, compiler.Options{})), out(t), args...)
			if len(parts.lines) != 4 {
				t.Fatalf("%d steps of 3 rows in 2 epochs of 5", len(parts.lines))
			}
			a, b, all := field(t, parts, 0, "tokens"), field(t, parts, 1, "tokens"), field(t, full, 0, "tokens")
			if b != all || a >= b {
				t.Errorf("%v, then %v targets of %v", a, b, all) // counted from the start
			}
		})
	}
}

// A document that does not fit a row is an error that says what to do, and what a program
// was not compiled for is not done.
func TestDocumentsThatDoNotFit(t *testing.T) {
	t.Parallel()
	data := documents(t, 30, 5)
	_, text := fails(t, program(t, "llama", compiler.Options{}), "--data", data, "--out", out(t))
	for _, want := range []string{"MT0677", "document 0 has 30 tokens", "--seq 16", "--overlong"} {
		if !says(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	_, text = fails(t, program(t, "llama", compiler.Options{}), "--data", data, "--out", out(t), "--set", "train.documents=packed")
	if !says(text, "changes the schedule") {
		t.Error(text)
	}
}
