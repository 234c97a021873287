package program

import (
	"math"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/data"
	"github.com/megatrain/mtc/runtime/plan"
)

// heldNothing is evaluation data that nobody reads.
type heldNothing struct{ data.Held }

// TestBestOfOtherDataBeginsAnew: a resumed run compares losses of the same evaluation alone.
func TestBestOfOtherDataBeginsAnew(t *testing.T) {
	const before = 2.5
	for _, c := range []struct {
		name     string
		step     int64  // of the best weights; the run goes on from step 10
		was      string // what they were found on
		batches  int64
		evaluate bool
		want     float64 // 0: begun anew
		told     bool
	}{
		{"the same", 8, "abc 3", 3, true, before, false},
		{"of a run before this was kept", 8, "", 3, true, before, false},
		{"other files", 8, "abd 3", 3, true, 0, true},
		{"other batches", 8, "abc 3", 4, true, 0, true},
		{"no evaluation now", 8, "abd 3", 3, false, before, false},
		{"of a history that is left", 12, "abc 3", 3, true, 0, false},
	} {
		dir := t.TempDir()
		loss := before
		if err := checkpoint.SaveBest(dir, checkpoint.State{Step: c.step, EvalLoss: &loss, EvalData: c.was}, nil); err != nil {
			t.Fatal(err)
		}
		s := &session{settings: &settings{out: dir, train: plan.Train{EvalSteps: c.batches}}, feed: &data.Feed{EvalID: "abc"}}
		s.from = &checkpoint.Checkpoint{State: checkpoint.State{Step: 10}}
		if c.evaluate {
			s.eval = heldNothing{}
		}
		var told strings.Builder
		if err := s.startBest(&told); err != nil {
			t.Fatal(err)
		}
		want := c.want
		if want == 0 {
			want = math.Inf(1)
		}
		if s.best != want || (told.Len() > 0) != c.told {
			t.Errorf("%s: the best is %v, wanted %v; told %q", c.name, s.best, want, told.String())
		}
	}
}
