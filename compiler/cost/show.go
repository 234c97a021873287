package cost

import (
	"cmp"
	"slices"

	"github.com/megatrain/mtc/runtime/device"
)

// show fills a timeline with what ran between start and end.
func (s *sim) show(t *Timeline, start, end float64, shown int) {
	t.Seconds = end - start
	if t.Tokens > 0 && t.Seconds > 0 {
		t.Rate = float64(t.Tokens) / t.Seconds
	}
	at := make([]int32, len(s.runs)) // by simulated run: one more than its index of Runs
	shows := func(r *simRun) bool {
		return !(r.end < start || r.start > end || r.end == start && r.start < start)
	}
	n := 0
	for _, id := range s.order {
		if shows(&s.runs[id]) {
			n++
		}
	}
	t.Runs = make([]Run, 0, n)
	for _, id := range s.order {
		r := &s.runs[id]
		if !shows(r) {
			continue
		}
		after := -1
		if r.after >= 0 {
			after = int(at[r.after]) - 1
		}
		task := &s.c.p.Tasks[r.task]
		t.Runs = append(t.Runs, Run{
			Task: task.ID, Step: int(r.step) - shown, Lane: task.Lane, Start: r.start - start, End: r.end - start,
			Alone: s.alone[r.task], After: after, Ready: r.ready - start,
		})
		at[id] = int32(len(t.Runs))
	}
	t.useLanes()
	t.walk(s, start)
}

// interval is a stretch of time.
type interval struct{ from, to float64 }

// useLanes adds up what each lane did within the period.
func (t *Timeline) useLanes() {
	var busy [device.NumLanes][]interval
	var tasks [device.NumLanes]int
	for i := range t.Runs {
		r := &t.Runs[i]
		if from, to := max(r.Start, 0), min(r.End, t.Seconds); to > from {
			busy[r.Lane] = append(busy[r.Lane], interval{from, to})
		}
		if r.End > 0 && r.End <= t.Seconds {
			tasks[r.Lane]++
		}
	}
	for l := range busy {
		slices.SortFunc(busy[l], func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	}
	for l := range device.NumLanes {
		u := LaneUse{Lane: l.String(), Tasks: tasks[l]}
		for _, x := range busy[l] {
			u.Busy += x.to - x.from
		}
		if l != device.Compute {
			u.Hidden = overlap(busy[l], busy[device.Compute])
		}
		u.Exposed = u.Busy - u.Hidden
		t.Lanes = append(t.Lanes, u)
	}
}

// overlap is the time that two lists of disjoint, ordered intervals share.
func overlap(a, b []interval) float64 {
	sum := 0.0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if from, to := max(a[i].from, b[j].from), min(a[i].to, b[j].to); to > from {
			sum += to - from
		}
		if a[i].to < b[j].to {
			i++
		} else {
			j++
		}
	}
	return sum
}

// walk follows the critical path back from the run that ends the period and adds up, by bound,
// the seconds on it.
func (t *Timeline) walk(s *sim, start float64) {
	t.Path = map[Bound]float64{}
	at := -1
	for i := range t.Runs {
		if r := &t.Runs[i]; r.End <= t.Seconds*(1+1e-12) && (at < 0 || r.End >= t.Runs[at].End) {
			at = i
		}
	}
	until := t.Seconds
	for at >= 0 && until > 0 {
		r := &t.Runs[at]
		from, to := max(r.Start, 0), min(r.End, until)
		if to > from {
			t.addPath(s.c.estimate(&s.c.p.Tasks[r.Task]), to-from)
		}
		until = min(until, from)
		at = r.After
	}
	most := 0.0
	for _, b := range bounds {
		if x := t.Path[b]; x > most {
			t.Bound, most = b, x
		}
	}
}

// addPath shares out a stretch of a task by the bounds of its launches.
func (t *Timeline) addPath(e Estimate, seconds float64) {
	if e.Seconds <= 0 {
		return
	}
	for _, b := range bounds {
		if x := e.Parts[b]; x > 0 {
			t.Path[b] += seconds * x / e.Seconds
		}
	}
}
