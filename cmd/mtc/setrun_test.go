//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSetIsWhatTheTextSays: a setting of the command line trains as one of the train block does, bit for bit,
// and otherwise than without it; a resumed run goes on with it.
func TestSetIsWhatTheTextSays(t *testing.T) {
	w := newWorkFolder(t)
	const plain = quickTrain + "; steps = 4; eval = none"
	weights := func(dir string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(w.dir, dir, "step-000004", "weights.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		return hashOf(text)
	}
	w.model("tiny one.mt", plain)
	w.must(".", "compile", "my models/tiny one.mt", "-o", "plain")
	w.must(".", "run", "plain", "--out", "runs/plain")
	for i, set := range []string{
		"optimizer=adamw(beta1 = 0.5)", "optimizer=adamw(beta2 = 0.5)", "optimizer=adamw(eps = 1.0)", "optimizer=adamw(decay = 0.9)",
		"lr=constant(peak = 1e-2)", "lr=cosine(peak = 1e-2, warmup = 2, final = 1e-3)", "lr=wsd(peak = 1e-2, decay = 2)", "seed=7",
	} {
		name := filepath.Join("runs", string(rune('a'+i)))
		w.must(".", "run", "plain", "--set", "train."+set, "--out", name+" set")
		if i%3 == 0 { // the same, through the text
			w.model("tiny one.mt", plain+"; "+set)
			w.must(".", "compile", "my models/tiny one.mt", "-o", "own")
			w.must(".", "run", "own", "--out", name+" text")
			if weights(name+" set") != weights(name+" text") {
				t.Errorf("%s: the command line trains otherwise than the text", set)
			}
			w.model("tiny one.mt", plain)
		}
		if weights(name+" set") == weights("runs/plain") {
			t.Errorf("%s has no effect", set)
		}
		// Two steps, and the other two once more by a resumed run.
		w.must(".", "run", "plain", "--set", "train."+set, "--out", name+" halves", "--save-every", "2")
		if err := os.RemoveAll(filepath.Join(w.dir, name+" halves", "step-000004")); err != nil {
			t.Fatal(err)
		}
		w.must(".", "run", "plain", "--resume", "--out", name+" halves")
		if weights(name+" set") != weights(name+" halves") {
			t.Errorf("%s: a resumed run is another one", set)
		}
	}
}
