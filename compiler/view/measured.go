package view

import (
	"fmt"
	"slices"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// TaskTime is when a task ran, in nanoseconds; all steps and lanes have one origin.
type TaskTime struct {
	Task       int
	Start, End int64
}

// StepTimes are the tasks of one measured step.
type StepTimes struct {
	Step    int64
	Seconds float64 // wall time, 0: unknown
	Tasks   []TaskTime
}

// Measurement is steady steps as a run measured them.
type Measurement struct {
	Device  string // "cpu (2 threads)"
	Step    int64  // the one shown
	Steps   []StepTimes
	Periods []float64 // seconds from the results of the step before to its own, by step
	// Untimed are the wall times of steps of the run that were not measured.
	Untimed []float64
	// DeviceBytes and HostBytes are the memory that the run had in use, 0: not known.
	DeviceBytes, HostBytes int64
	Saved                  bool // it has saved a checkpoint
}

// Median is the middle of values; 0 of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// Measure lays a measured run over the schedule. Of its steps it shows the one of median
// length. The error says what does not fit this plan.
func (s *Schedule) Measure(m *Measurement) (*Step, error) {
	p := s.Plan
	r := p.Lists[plan.Steady]
	n := r.End - r.Start
	times := make([][]TaskTime, len(m.Steps)) // by step and place
	for k, x := range m.Steps {
		if len(x.Tasks) != n {
			return nil, fmt.Errorf("step %d has %d tasks, a steady step of the plan has %d", x.Step, len(x.Tasks), n)
		}
		times[k] = make([]TaskTime, n)
		seen := make([]bool, n)
		for _, t := range x.Tasks {
			i := t.Task - r.Start
			if i < 0 || i >= n || seen[i] {
				return nil, fmt.Errorf("step %d has a task %d, which is not one of a steady step", x.Step, t.Task)
			}
			seen[i], times[k][i] = true, t
		}
	}
	if len(times) == 0 {
		return nil, fmt.Errorf("no step was measured")
	}
	b := &measuring{plan: p, times: times, steps: m.Steps}
	if err := b.straighten(); err != nil {
		return nil, err
	}
	b.results = b.resultPlace()
	// A period needs the end of the step before; where no step has one before, it begins with
	// the first task.
	whole := []int{}
	m.Periods = make([]float64, len(times))
	for k := range times {
		from, to := b.period(k)
		m.Periods[k] = float64(to-from) / 1e9
		if b.follows(k) {
			whole = append(whole, k)
		}
	}
	if err := m.lasted(); err != nil {
		return nil, err
	}
	if len(whole) == 0 {
		for k := range times {
			whole = append(whole, k)
		}
	}
	slices.SortStableFunc(whole, func(a, c int) int {
		switch {
		case m.Periods[a] < m.Periods[c]:
			return -1
		case m.Periods[a] > m.Periods[c]:
			return 1
		}
		return 0
	})
	shown := whole[(len(whole)-1)/2]
	m.Step = m.Steps[shown].Step
	t := newStep(s, b.line(shown))
	t.Measured = m
	return t, nil
}

// lasted refuses wall times that are far below what the tasks say. The host sees a step's end late, and the next
// one's the earlier, which a few hundredths of a second and a part of all steps allow for.
func (m *Measurement) lasted() error {
	wall, periods := 0.0, 0.0
	for k, x := range m.Steps {
		if x.Seconds == 0 {
			return nil // not known
		}
		wall, periods = wall+x.Seconds, periods+m.Periods[k]
	}
	if wall < periods/4-0.02 {
		return fmt.Errorf("its %d steps take %.3g s, and their tasks %.3g s", len(m.Steps), wall, periods)
	}
	return nil
}

type measuring struct {
	plan    *plan.Plan
	steps   []StepTimes
	times   [][]TaskTime
	results int // place of the task that completes a step's results
}

// clockSlack is how much, in nanoseconds, two times of a lane may contradict each other: what clocks
// resolve.
const clockSlack = 20_000

// straighten makes the tasks of a lane follow each other, as a lane runs them. Times that are
// off by more than a clock's resolution are no measurement of it.
func (b *measuring) straighten() error {
	var last [device.NumLanes]int64
	r := b.plan.Lists[plan.Steady]
	for k := range b.times {
		for i := range b.times[k] {
			x, lane := &b.times[k][i], b.plan.Tasks[r.Start+i].Lane
			if x.Start < last[lane]-clockSlack {
				return fmt.Errorf("task %d of step %d starts while %s was busy with the one before", x.Task, b.steps[k].Step, lane)
			}
			x.Start = max(x.Start, last[lane])
			x.End = max(x.End, x.Start)
			last[lane] = x.End
		}
	}
	return nil
}

// resultPlace is where a step's results are complete: at its event, else at its last task.
func (b *measuring) resultPlace() int {
	r := b.plan.Lists[plan.Steady]
	for i := r.Start; i < r.End; i++ {
		if e := b.plan.Tasks[i].Event; e >= 0 && e == b.plan.ResultsEvent {
			return i - r.Start
		}
	}
	return r.End - r.Start - 1
}

// follows says whether the step before was measured too.
func (b *measuring) follows(k int) bool { return k > 0 && b.steps[k-1].Step == b.steps[k].Step-1 }

// period is from the results of the step before to those of step k.
func (b *measuring) period(k int) (from, to int64) {
	to = b.times[k][b.results].End
	if b.follows(k) {
		return b.times[k-1][b.results].End, to
	}
	from = to
	for _, t := range b.times[k] {
		from = min(from, t.Start)
	}
	return from, to
}

// line makes a timeline of step k, and of what reaches into it from its neighbours.
func (b *measuring) line(k int) *cost.Timeline {
	p := b.plan
	r := p.Lists[plan.Steady]
	from, to := b.period(k)
	line := &cost.Timeline{
		List: plan.Steady, Machine: "measured", Seconds: float64(to-from) / 1e9, Tokens: p.Batch * p.Seq,
		Settled: true, First: r.Start, Path: map[cost.Bound]float64{},
	}
	if line.Seconds > 0 {
		line.Rate = float64(line.Tokens) / line.Seconds
	}
	at := func(ns int64) float64 { return float64(ns-from) / 1e9 }
	var ended [2]map[int]int // by parity: index of Runs by event
	last := [device.NumLanes]int{-1, -1, -1, -1}
	for j := max(0, k-1); j < min(len(b.times), k+2); j++ {
		if j != k && (j < k && !b.follows(k) || j > k && !b.follows(j)) {
			continue
		}
		ended[j&1] = map[int]int{}
		for i := range b.times[j] {
			t, x := &p.Tasks[r.Start+i], b.times[j][i]
			run := cost.Run{Task: t.ID, Step: j - k, Lane: t.Lane, Start: at(x.Start), End: at(x.End), After: last[t.Lane]}
			run.Alone = run.End - run.Start
			for _, w := range t.Waits {
				e, ok := ended[(j+w.Back)&1][w.Event]
				if !ok {
					continue
				}
				end := line.Runs[e].End
				run.Ready = max(run.Ready, end)
				if run.After < 0 || end > line.Runs[run.After].End {
					run.After = e
				}
			}
			last[t.Lane] = len(line.Runs)
			if t.Event >= 0 {
				ended[j&1][t.Event] = len(line.Runs)
			}
			line.Runs = append(line.Runs, run)
		}
	}
	trim(line)
	line.Lanes = lanes(line)
	return line
}

// trim leaves out runs that do not reach into the period.
func trim(line *cost.Timeline) {
	index := make([]int, len(line.Runs))
	var kept []cost.Run
	for i, r := range line.Runs {
		index[i] = -1
		if r.Step == 0 || r.End > 0 && r.Start < line.Seconds {
			index[i] = len(kept)
			kept = append(kept, r)
		}
	}
	order := make([]int, len(kept))
	for i := range kept {
		order[i] = i
		if a := kept[i].After; a >= 0 {
			kept[i].After = index[a]
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case kept[a].Start < kept[b].Start:
			return -1
		case kept[a].Start > kept[b].Start:
			return 1
		}
		return 0
	})
	where := make([]int, len(kept))
	for to, from := range order {
		where[from] = to
	}
	line.Runs = make([]cost.Run, len(kept))
	for to, from := range order {
		r := kept[from]
		if r.After >= 0 {
			r.After = where[r.After]
		}
		line.Runs[to] = r
	}
}

// lanes adds up what each lane did within the period.
func lanes(line *cost.Timeline) []cost.LaneUse {
	var busy [device.NumLanes][]span
	out := make([]cost.LaneUse, device.NumLanes)
	for i := range line.Runs {
		r := &line.Runs[i]
		if from, to := max(r.Start, 0), min(r.End, line.Seconds); to > from {
			busy[r.Lane] = append(busy[r.Lane], span{from, to})
		}
		if r.End > 0 && r.End <= line.Seconds {
			out[r.Lane].Tasks++
		}
	}
	for l := range device.NumLanes {
		u := &out[l]
		u.Lane = l.String()
		for _, x := range busy[l] {
			u.Busy += x.to - x.from
		}
		if l != device.Compute {
			u.Hidden = shared(busy[l], busy[device.Compute])
		}
		u.Exposed = u.Busy - u.Hidden
	}
	return out
}

// span is a stretch of time.
type span struct{ from, to float64 }

// shared is the time that two lists of disjoint stretches in order have in common.
func shared(a, b []span) float64 {
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
