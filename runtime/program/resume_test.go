package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/data"
	"github.com/megatrain/mtc/runtime/plan"
)

// TestMergeTakesWhatWasEdited: a resumed run keeps its settings, also those of its command line,
// but where the text has changed since.
func TestMergeTakesWhatWasEdited(t *testing.T) {
	then := plan.Train{Data: []string{"a"}, Steps: 10, Seed: 1, LR: plan.Schedule{Kind: "constant", Peak: 1}, Clip: 1, SaveKeep: 3}
	had := then
	had.Data, had.Seed, had.Steps, had.Holdout = []string{"/x/a"}, 7, 12, 0.05 // of the command line

	for _, c := range []struct {
		name string
		edit func(t *plan.Train)
		want func(t *plan.Train)
	}{
		{"nothing", func(*plan.Train) {}, func(*plan.Train) {}},
		{"steps", func(t *plan.Train) { t.Steps = 20 }, func(t *plan.Train) { t.Steps = 20 }},
		{"lr", func(t *plan.Train) { t.LR.Peak = 2 }, func(t *plan.Train) { t.LR.Peak = 2 }},
		{"clip off", func(t *plan.Train) { t.Clip = 0 }, func(t *plan.Train) { t.Clip = 0 }},
		{"data", func(t *plan.Train) { t.Data = []string{"b"} }, func(t *plan.Train) { t.Data = []string{"root/b"} }},
		{"evaluation data", func(t *plan.Train) { t.EvalData = []string{"e"} },
			func(t *plan.Train) { t.EvalData, t.Holdout = []string{"root/e"}, 0 }},
		{"no list is an empty list", func(t *plan.Train) { t.EvalData = []string{} }, func(*plan.Train) {}},
	} {
		now, want := then, had
		c.edit(&now)
		c.want(&want)
		fresh := now
		fresh.Data, fresh.EvalData = under("root", now.Data), under("root", now.EvalData)
		if d := cmp.Diff(want, merge(had, then, now, fresh)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// TestChangesAreSaid: each value that makes a resumed run another run is named with the old one.
func TestChangesAreSaid(t *testing.T) {
	dir := t.TempDir()
	open := func(name, text string) *data.Feed {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		c, err := data.Open([]string{path}, data.Options{Vocab: 256})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return &data.Feed{ID: c.ID()}
	}
	a := filepath.Join(dir, "a")
	same := open("a", "what it was trained on")
	before := plan.Train{Data: []string{a}, Steps: 10, Seed: 1, Clip: 1,
		LR: plan.Schedule{Kind: "cosine", Peak: 0.5}, Optimizer: plan.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}}
	for _, c := range []struct {
		name string
		edit func(s *session)
		want []string
	}{
		{"nothing", func(*session) {}, nil},
		{"instructions", func(s *session) { s.from.State.Vectors = "other" }, []string{"instructions " + vectors() + " instead of other"}},
		{"the same instructions", func(s *session) { s.from.State.Vectors = vectors() }, nil},
		{"how often to save", func(s *session) { s.train.SaveEvery = 5 }, nil},
		{"seed", func(s *session) { s.train.Seed = 2 }, []string{"seed 2 instead of 1"}},
		{"batch", func(s *session) { s.plan.Batch = 8 }, []string{"batch of 8 rows instead of 4"}},
		{"files", func(s *session) { s.from.State.Data = "other" }, []string{"data: files were added, removed or changed"}},
		{"data", func(s *session) { s.feed, s.train.Data = open("b", "other"), []string{"b"} }, []string{"data: b instead of " + a}},
		{"held-out share", func(s *session) { s.from.State.Data, s.train.Holdout = "other", 0.5 }, []string{"data: a share of 0.5 is held out instead of 0"}},
		{"optimizer", func(s *session) { s.train.Optimizer.Beta1 = 0.8 }, []string{"optimizer adamw(beta1 = 0.8", "instead of adamw(beta1 = 0.9"}},
		{"lr", func(s *session) { s.train.LR.Peak = 0.25 }, []string{"lr cosine(peak = 0.25", "instead of cosine(peak = 0.5"}},
		{"steps", func(s *session) { s.train.Steps = 20 }, []string{"steps 20 instead of 10"}},
		{"steps of a constant lr", func(s *session) {
			s.before.LR.Kind, s.train.LR.Kind, s.train.Steps = "constant", "constant", 20
		}, nil},
		{"clip", func(s *session) { s.train.Clip = 0 }, []string{"clip none instead of 1"}},
		{"no record of the run", func(s *session) { s.before, s.train.Clip = nil, 0 }, nil},
	} {
		was := before
		s := &session{plan: &plan.Plan{Batch: 4}, feed: same, settings: &settings{train: before, before: &was,
			from: &checkpoint.Checkpoint{State: checkpoint.State{Seed: 1, Batch: 4, Data: same.ID}}}}
		c.edit(s)
		note := noteOf(s.changes())
		if (note == "") != (c.want == nil) {
			t.Errorf("%s: it says %q", c.name, note)
		}
		for _, w := range c.want {
			if !strings.Contains(note, w) {
				t.Errorf("%s: no %q in %q", c.name, w, note)
			}
		}
	}
}

// TestProgramIn: a shell looks for a word without a slash elsewhere.
func TestProgramIn(t *testing.T) {
	for dir, want := range map[string]string{".": "./", "./": "./", "runs/nano": "runs/nano/", "./a/..": "./", "..": "../", "/r": "/r/"} {
		if got := filepath.ToSlash(programIn(dir)); got != want+FileName() {
			t.Errorf("%s: %s", dir, got)
		}
	}
}
