package checkpoint

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func saveBest(t *testing.T, dir string, step int64, loss float64) {
	t.Helper()
	m := newMemory(byte(step))
	st := state(step)
	st.EvalLoss = &loss
	if err := SaveBest(dir, st, FromSlabs(m.plan, m.view)); err != nil {
		t.Fatal(err)
	}
}

func wantBest(t *testing.T, dir string, step int64, loss float64) {
	t.Helper()
	c, err := Best(dir)
	if err != nil || c == nil {
		t.Fatalf("%v, %v", c, err)
	}
	if c.State.Step != step || *c.State.EvalLoss != loss || c.Whole() {
		t.Errorf("the best is of step %d with loss %g, whole %t; wanted %d, %g", c.State.Step, *c.State.EvalLoss, c.Whole(), step, loss)
	}
	m, want := newMemory(99), newMemory(byte(step))
	if err := c.LoadSlabs(m.plan, m.view, false); err != nil || !slices.Equal(m.bufs[1], want.bufs[1]) {
		t.Errorf("%v, or other weights", err)
	}
}

// The best weights are replaced whole, are no step of the run, and stay when steps go.
func TestBestIsReplacedAndStays(t *testing.T) {
	dir := t.TempDir()
	if c, err := Best(dir); c != nil || err != nil {
		t.Errorf("an empty folder has a best: %v, %v", c, err)
	}
	saveBest(t, dir, 3, 2.5)
	saveBest(t, dir, 5, 2)
	for s := range int64(4) {
		mustSave(t, dir, 10+s, 1)
	}
	wantBest(t, dir, 5, 2)
	if got := names(t, dir); !slices.Equal(got, []string{"best", "step-000013"}) {
		t.Errorf("the folder has %v", got)
	}
	c, err := Resolve(filepath.Join(dir, BestFolder), filepath.Join(dir, BestFolder))
	if err != nil || c.State.Step != 5 {
		t.Errorf("as a path: %v, %v", c, err)
	}
	if c, err := Latest(dir); err != nil || c.State.Step != 13 || !c.Whole() {
		t.Errorf("the newest is %v, %v", c, err)
	}
}

// A replacement that is cut short between its renames leaves the one before, also for a Save.
func TestBestSurvivesABrokenReplacement(t *testing.T) {
	dir := t.TempDir()
	saveBest(t, dir, 3, 2.5)
	if err := os.Rename(filepath.Join(dir, BestFolder), filepath.Join(dir, bestOld)); err != nil {
		t.Fatal(err)
	}
	mustSave(t, dir, 7, 0)
	wantBest(t, dir, 3, 2.5)
	if err := os.Rename(filepath.Join(dir, BestFolder), filepath.Join(dir, bestOld)); err != nil {
		t.Fatal(err)
	}
	saveBest(t, dir, 9, 1)
	wantBest(t, dir, 9, 1)
}
