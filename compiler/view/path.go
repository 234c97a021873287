package view

import (
	"math"
	"slices"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// Link is a stretch of the critical path: a run, or nothing (Run -1), while the step waited
// for what the timeline does not show: the submission of the next step.
type Link struct {
	Run      int
	From, To float64
}

// Path follows the critical path back from the run that ends the period, in order of time.
// Each run on it began when the one before it ended.
func (t *Step) Path() []Link {
	line := t.Line
	at := -1
	for i := range line.Runs {
		r := &line.Runs[i]
		if r.End <= line.Seconds*(1+1e-9) && (at < 0 || r.End > line.Runs[at].End ||
			r.End == line.Runs[at].End && r.Start >= line.Runs[at].Start) {
			at = i
		}
	}
	var out []Link
	until := line.Seconds
	for at >= 0 && until > 0 {
		r := &line.Runs[at]
		from, to := max(r.Start, 0), min(r.End, until)
		if gap := until - to; gap > 0 {
			out = append(out, Link{-1, to, until})
		}
		if to > from {
			out = append(out, Link{at, from, to})
		}
		until = min(until, from)
		if r.After >= at {
			break // in a timeline that somebody made up
		}
		at = r.After
	}
	if until > 0 {
		out = append(out, Link{-1, 0, until})
	}
	slices.Reverse(out)
	return out
}

// PathPart is the share of a kind of task in the critical path.
type PathPart struct {
	Lane    string  `json:"lane"` // "" of waiting
	Kind    string  `json:"kind"` // "waiting" where no task of the timeline runs
	Tasks   int     `json:"tasks"`
	Seconds float64 `json:"seconds"`
}

// PathParts adds up the critical path by kind of task and lane, the longest first.
func (t *Step) PathParts() []PathPart {
	var out []PathPart
	for _, l := range t.Path() {
		part := PathPart{Kind: "waiting"}
		if l.Run >= 0 {
			task := &t.Plan.Tasks[t.Line.Runs[l.Run].Task]
			part = PathPart{Lane: task.Lane.String(), Kind: Kind(task), Tasks: 1}
		}
		k := slices.IndexFunc(out, func(p PathPart) bool { return p.Lane == part.Lane && p.Kind == part.Kind })
		if k < 0 {
			k = len(out)
			out = append(out, PathPart{Lane: part.Lane, Kind: part.Kind})
		}
		out[k].Tasks += part.Tasks
		out[k].Seconds += l.To - l.From
	}
	slices.SortStableFunc(out, func(a, b PathPart) int { return descending(a.Seconds, b.Seconds) })
	return out
}

func descending(a, b float64) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}

// Slack is, by place in the list, how much longer each task might take, or how much later it
// might run, before the step takes longer, all else staying as it is. A steady step is laid
// three times one behind the other, because much of what it leaves over matters to the next
// one. Infinite where nothing ever waits for the task.
func (t *Step) Slack() []float64 {
	n := t.Len()
	copies := 1
	if t.Line.List == plan.Steady {
		copies = 3
	}
	g := t.graph()
	late := make([]float64, n*copies)
	for i := range late {
		late[i] = math.Inf(1)
	}
	period := t.Line.Seconds
	result := g.result
	lag := t.lags(g)
	if copies == 1 {
		// Of another list every task has to be done.
		for i := range n {
			late[i] = period
		}
	} else {
		late[(copies-1)*n+result] = t.End[result] + float64(copies-1)*period
	}
	// Later copies first, and in a list the last first: tasks wait for earlier ones only.
	for k := copies - 1; k >= 0; k-- {
		for i := n - 1; i >= 0; i-- {
			v := k*n + i
			start := late[v] - (t.End[i] - t.Start[i]) - lag[i]
			if math.IsInf(start, 1) {
				continue
			}
			for _, e := range g.before[i] {
				if j := k - e.back; j >= 0 {
					w := j*n + e.place
					late[w] = min(late[w], start)
				}
			}
			// The engine submits a step when the results of the one before are there.
			if k > 0 && copies > 1 {
				w := (k-1)*n + result
				late[w] = min(late[w], start)
			}
		}
	}
	slack := make([]float64, n)
	for i := range n {
		slack[i] = late[i] - t.End[i]
		if slack[i] < 0 { // rounding, and clocks that differ
			slack[i] = 0
		}
	}
	return slack
}

// lags are, by place, how long after all that it waits for a task began: what a measured run
// lost to waking up and to submission. It stays when something is late.
func (t *Step) lags(g *graph) []float64 {
	lag := make([]float64, t.Len())
	steady := t.Line.List == plan.Steady
	for i := range lag {
		ready := math.Inf(-1)
		for _, e := range g.before[i] {
			ready = max(ready, t.End[e.place]-float64(e.back)*t.Line.Seconds)
		}
		if steady {
			ready = max(ready, t.End[g.result]-t.Line.Seconds)
		}
		if x := t.Start[i] - ready; x > 0 && !math.IsInf(x, 0) {
			lag[i] = x
		}
	}
	return lag
}

// edge says that a task has to be done before: the one at a place of the list, of this step or
// of the one before.
type edge struct{ place, back int }

type graph struct {
	before [][]edge // by place
	result int      // place of the task that completes the step's results
}

// graph lists what each task of the list has to wait for: the one before it on its lane, and
// the recorders of its waits.
func (t *Step) graph() *graph {
	p, first, n := t.Plan, t.First(), t.Len()
	g := &graph{before: make([][]edge, n), result: n - 1}
	recorder := map[int]int{}
	last := [device.NumLanes]int{-1, -1, -1, -1}
	for i := range n {
		task := &p.Tasks[first+i]
		last[task.Lane] = i
		if task.Event >= 0 {
			recorder[task.Event] = i
			if task.Event == p.ResultsEvent {
				g.result = i
			}
		}
	}
	// The first task of a lane comes behind the last one of the step before.
	before := last
	back := [device.NumLanes]int{1, 1, 1, 1}
	steady := t.Line.List == plan.Steady
	for i := range n {
		task := &p.Tasks[first+i]
		if b := before[task.Lane]; b >= 0 && (back[task.Lane] == 0 || steady) {
			g.before[i] = append(g.before[i], edge{b, back[task.Lane]})
		}
		before[task.Lane], back[task.Lane] = i, 0
		for _, w := range task.Waits {
			r, ok := recorder[w.Event]
			if ok && (w.Back == 1 && steady || w.Back == 0 && r < i) {
				g.before[i] = append(g.before[i], edge{r, w.Back})
			}
		}
	}
	return g
}

// waiting is why a run began when it did: the run that it came after.
func (t *Step) waiting(run *cost.Run) (after *cost.Run, lane bool) {
	if run.After < 0 || run.After >= len(t.Line.Runs) {
		return nil, false
	}
	after = &t.Line.Runs[run.After]
	return after, after.Lane == run.Lane
}
