package optim

import (
	"math"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/plan"
)

func TestLearningRates(t *testing.T) {
	for _, c := range []struct {
		name string
		s    plan.Schedule
		n    int64
		want map[int64]float64
	}{
		{"constant", plan.Schedule{Kind: "constant", Peak: 2}, 10, map[int64]float64{0: 2, 9: 2, 100: 2}},
		{"warm-up reaches the peak in its last step", plan.Schedule{Kind: "constant", Peak: 2, Warmup: 4}, 10,
			map[int64]float64{0: 0.5, 1: 1, 3: 2, 4: 2}},
		{"linear", plan.Schedule{Kind: "linear", Peak: 2, Final: 1, Warmup: 2}, 12,
			map[int64]float64{0: 1, 1: 2, 2: 2, 7: 1.5, 12: 1, 13: 1}},
		{"linear without warm-up", plan.Schedule{Kind: "linear", Peak: 1}, 4, map[int64]float64{0: 1, 1: 0.75, 3: 0.25, 4: 0}},
		{"cosine", plan.Schedule{Kind: "cosine", Peak: 3, Final: 1, Warmup: 10}, 110,
			map[int64]float64{9: 3, 10: 3, 35: 2 + math.Sqrt2/2, 60: 2, 85: 2 - math.Sqrt2/2, 110: 1, 1000: 1}},
		{"wsd", plan.Schedule{Kind: "wsd", Peak: 2, Final: 1, Warmup: 2, Decay: 10}, 100,
			map[int64]float64{0: 1, 2: 2, 89: 2, 90: 2, 95: 1.5, 99: 1.1, 100: 1, 200: 1}},
		{"wsd without decay", plan.Schedule{Kind: "wsd", Peak: 2, Final: 1}, 10, map[int64]float64{0: 2, 9: 2}},
		{"a run as long as its warm-up", plan.Schedule{Kind: "cosine", Peak: 2, Warmup: 4}, 4, map[int64]float64{3: 2, 4: 0}},
	} {
		for k, want := range c.want {
			if got := LR(c.s, k, c.n); math.Abs(got-want) > 1e-12 {
				t.Errorf("%s: step %d of %d has %v, wanted %v", c.name, k, c.n, got, want)
			}
		}
	}
}

// Every schedule stays within [0, Peak], rises while warming up and never rises after it.
func TestSchedulesAreMonotone(t *testing.T) {
	for _, kind := range Kinds {
		s := plan.Schedule{Kind: kind, Peak: 1e-3, Final: 1e-5, Warmup: 17, Decay: 40}
		for k := int64(0); k < 220; k++ {
			a, b := LR(s, k, 200), LR(s, k+1, 200)
			switch {
			case a < 0 || a > s.Peak:
				t.Errorf("%s: step %d has %v", kind, k, a)
			case k+1 < s.Warmup && b <= a:
				t.Errorf("%s: step %d of the warm-up does not rise", kind, k+1)
			case k >= s.Warmup && b > a:
				t.Errorf("%s: rises after step %d", kind, k)
			}
		}
	}
}

func TestCheckSchedule(t *testing.T) {
	ok := plan.Schedule{Kind: "wsd", Peak: 1, Warmup: 2, Decay: 3}
	if err := CheckSchedule(ok); err != nil {
		t.Error(err)
	}
	for part, change := range map[string]func(s *plan.Schedule){
		"not one of": func(s *plan.Schedule) { s.Kind = "step" },
		"peak":       func(s *plan.Schedule) { s.Peak = math.NaN() },
		"final":      func(s *plan.Schedule) { s.Final = -1 },
		"warm-up of": func(s *plan.Schedule) { s.Warmup = -1 },
		"decay of":   func(s *plan.Schedule) { s.Decay = -1 },
	} {
		s := ok
		change(&s)
		if err := CheckSchedule(s); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: got %v", part, err)
		}
	}
}
