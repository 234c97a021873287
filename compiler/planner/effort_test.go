package planner

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler/schedule"
	"github.com/megatrain/mtc/lang/diag"
)

// bounded is a search that may make so many tasks.
func bounded(t *testing.T, r Request, most int) *search {
	t.Helper()
	s, err := newSearch(context.Background(), r, &diag.List{})
	if err != nil {
		t.Fatal(err)
	}
	s.effort.most = most
	return s
}

// TestSearchIsBounded: however little a search may make, it ends with a plan that fits and says that it was cut
// short; one with room to spare does not.
func TestSearchIsBounded(t *testing.T) {
	r := request(1300*mib, 3000*mib)
	whole, err := choose(t, r)
	if err != nil {
		t.Fatal(err)
	}
	if whole.Cut {
		t.Error("a search in a model of 12 layers is cut short")
	}
	for _, most := range []int{1, 40_000} {
		c, err := bounded(t, r, most).run()
		if err != nil || c == nil {
			t.Errorf("%d tasks: %v", most, err)
			continue
		}
		if !c.Cut || c.Tried >= whole.Tried {
			t.Errorf("%d tasks: cut %t, %d short steps made, %d without a bound", most, c.Cut, c.Tried, whole.Tried)
		}
		if c.DevicePeak > r.Device || c.HostPeak > r.Host {
			t.Errorf("%d tasks: it takes %d and %d bytes", most, c.DevicePeak, c.HostPeak)
		}
		if err := schedule.Verify(c.Plan); err != nil {
			t.Errorf("%d tasks: %v", most, err)
		}
	}
}

// TestChangeIsBounded: where there is no time to look for a change that fits, none is named, and not said to be none.
func TestChangeIsBounded(t *testing.T) {
	s := bounded(t, request(944*mib, 880*mib), 1)
	_, err := s.run()
	var short *ShortError
	if !errors.As(err, &short) {
		t.Fatal(err)
	}
	if short.nearest(s); short.Change != "" || !short.Cut {
		t.Errorf("change %q, cut %t", short.Change, short.Cut)
	}
}

// TestProgress: a search tells what it does, from lowering to the last plan.
func TestProgress(t *testing.T) {
	var all []string
	r := request(1300*mib, 3000*mib)
	r.Progress = func(text string) { all = append(all, text) }
	if _, err := choose(t, r); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(all, "\n")
	for _, want := range []string{"lowering it with ", "ways found to fit it", "simulated by short steps", "building a step of about ", "looking around the best so far"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing is told of %q", want)
		}
	}
}

// TestEvenGroups: so many groups are as few as have no more micro-batches each.
func TestEvenGroups(t *testing.T) {
	for _, tc := range []struct{ groups, micros, want int64 }{
		{1, 12, 1}, {2, 12, 2}, {4, 12, 4}, {8, 12, 6}, {16, 12, 12}, {0, 12, 1}, {2, 1, 1}, {5, 9, 5}, {4, 9, 3},
	} {
		if got := evenGroups(tc.groups, tc.micros); got != tc.want {
			t.Errorf("%d groups of %d micro-batches: %d, want %d", tc.groups, tc.micros, got, tc.want)
		}
	}
}
