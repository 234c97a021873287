package cost

import (
	"fmt"
	"math"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// Most steps simulated until the period repeats, and how nearly it has to.
const (
	mostSteps = 12
	settled   = 1e-4
)

// Simulate predicts a steady step of a plan: first, then steady until two periods are alike,
// as the engine submits them, a step when the results of the one before are there.
func Simulate(p *plan.Plan, w *Work, m *Machine) (*Timeline, error) {
	return SimulateList(p, w, m, plan.Steady)
}

// SimulateCoarse predicts the steady step of a plan with fewer micro-batches, each of which stands for
// so many: their functions and what they save take that much longer. What crosses the link once a
// group is as it is. It returns the seconds of the step.
func SimulateCoarse(p *plan.Plan, w *Work, m *Machine, times float64) (float64, error) {
	c, err := newPricer(p, w, m)
	if err != nil {
		return 0, err
	}
	c.times = times
	s := newSim(c)
	if err := s.step(plan.First); err != nil {
		return 0, err
	}
	if _, err := s.settle(); err != nil {
		return 0, err
	}
	n := len(s.results)
	return s.results[n-1] - s.results[n-2], nil
}

// SimulateList predicts one list. Drain follows a steady step; the others start on an idle
// machine and last until all of their tasks are done.
func SimulateList(p *plan.Plan, w *Work, m *Machine, list plan.List) (*Timeline, error) {
	c, err := newPricer(p, w, m)
	if err != nil {
		return nil, err
	}
	s := newSim(c)
	t := &Timeline{List: list, Machine: m.Name, First: p.Lists[list].Start}
	for i := p.Lists[list].Start; i < p.Lists[list].End; i++ {
		t.Tasks = append(t.Tasks, c.estimate(&p.Tasks[i]))
	}
	var start, end float64
	shown := 0 // the step shown
	switch list {
	case plan.Steady:
		if err := s.step(plan.First); err != nil {
			return nil, err
		}
		if t.Settled, err = s.settle(); err != nil {
			return nil, err
		}
		n := len(s.results)
		start, end, shown = s.results[n-2], s.results[n-1], n-1
		// What the shown step leaves to the next reaches into the period as what the step
		// before left does: it is in the runs of that one.
		t.Tokens = p.Batch * p.Seq
	case plan.Drain:
		for _, l := range []plan.List{plan.First, plan.Steady} {
			if err := s.step(l); err != nil {
				return nil, err
			}
		}
		start = s.now
		if err := s.step(plan.Drain); err != nil {
			return nil, err
		}
		s.finish()
		end, shown = s.now, 2
	default:
		if err := s.step(list); err != nil {
			return nil, err
		}
		s.finish()
		end = s.now
	}
	s.finish()
	s.show(t, start, end, shown)
	return t, nil
}

// sim is a machine in simulated time. Lanes run their tasks in order; a task starts when its
// lane is free and its waits are over; running tasks slow each other down (contention.go).
type sim struct {
	c       *pricer
	now     float64
	runs    []simRun
	queues  [device.NumLanes][]int // runs not begun, by lane
	busy    running
	jobs    [device.NumLanes]job
	last    [device.NumLanes]int // run that ended last, -1
	events  [2][]int             // by parity and event: the run that records it, -1
	steps   int
	results []float64 // when each step's results were there
	order   []int     // runs in order of their start
}

type simRun struct {
	task       *plan.Task
	step       int
	est        Estimate
	waits      []int // runs
	start, end float64
	ready      float64
	after      int
	begun      bool
	done       bool
}

func newSim(c *pricer) *sim {
	s := &sim{c: c}
	for l := range s.last {
		s.last[l] = -1
	}
	for k := range s.events {
		s.events[k] = make([]int, c.p.Events)
		for i := range s.events[k] {
			s.events[k][i] = -1
		}
	}
	return s
}

// step submits a list and runs until its results are there.
func (s *sim) step(l plan.List) error {
	p, parity := s.c.p, s.steps&1
	result := -1
	for i := p.Lists[l].Start; i < p.Lists[l].End; i++ {
		t := &p.Tasks[i]
		r := simRun{task: t, step: s.steps, est: s.c.estimate(t), after: -1}
		for _, w := range t.Waits {
			if e := s.events[parity^w.Back&1][w.Event]; e >= 0 {
				r.waits = append(r.waits, e)
			}
		}
		id := len(s.runs)
		s.runs = append(s.runs, r)
		s.queues[t.Lane] = append(s.queues[t.Lane], id)
		if t.Event >= 0 {
			s.events[parity][t.Event] = id
			if t.Event == p.ResultsEvent {
				result = id
			}
		}
	}
	s.steps++
	for result >= 0 && !s.runs[result].done || result < 0 && l != plan.Drain && s.pending() {
		if !s.advance() {
			return fmt.Errorf("the tasks of %s wait for each other", l)
		}
	}
	s.results = append(s.results, s.now)
	return nil
}

// settle runs steady steps until two periods are alike; false where that takes too many.
func (s *sim) settle() (bool, error) {
	last := math.Inf(1)
	for range mostSteps {
		if err := s.step(plan.Steady); err != nil {
			return false, err
		}
		n := len(s.results)
		period := s.results[n-1] - s.results[n-2]
		if math.Abs(period-last) <= settled*period {
			return true, nil
		}
		last = period
	}
	return false, nil
}

func (s *sim) pending() bool {
	for l := range s.queues {
		if len(s.queues[l]) > 0 || s.busy[l] != nil {
			return true
		}
	}
	return false
}

// finish runs what is left.
func (s *sim) finish() {
	for s.advance() {
	}
}

// advance begins what can begin and moves to the next end of a task; false when nothing runs.
func (s *sim) advance() bool {
	for l := range s.queues {
		if s.busy[l] == nil && len(s.queues[l]) > 0 {
			s.begin(device.Lane(l))
		}
	}
	speeds := s.c.m.speeds(&s.busy)
	step := math.Inf(1)
	for l, j := range s.busy {
		if j != nil {
			step = min(step, j.left/speeds[l])
		}
	}
	if math.IsInf(step, 1) {
		return false
	}
	s.now += step
	for l, j := range s.busy {
		if j == nil {
			continue
		}
		// The one that set the step is done, whatever the rounding says.
		if left := j.left - step*speeds[l]; left > 1e-12 {
			j.left = left
			continue
		}
		r := &s.runs[j.run]
		r.end, r.done = s.now, true
		s.last[l], s.busy[l] = j.run, nil
	}
	return true
}

// begin starts the first task of a lane if its waits are over.
func (s *sim) begin(l device.Lane) {
	id := s.queues[l][0]
	r := &s.runs[id]
	after, at := s.last[l], -1.0
	if after >= 0 {
		at = s.runs[after].end
	}
	for _, w := range r.waits {
		x := &s.runs[w]
		if !x.done {
			return
		}
		r.ready = max(r.ready, x.end)
		if x.end > at {
			after, at = w, x.end
		}
	}
	s.queues[l] = s.queues[l][1:]
	r.start, r.after, r.begun = s.now, after, true
	s.order = append(s.order, id)
	s.jobs[l] = job{
		run: id, left: r.est.Seconds,
		update: r.task.Lane == device.Host,
		copies: r.task.Lane == device.H2D || r.task.Lane == device.D2H,
	}
	s.busy[l] = &s.jobs[l]
}

// Estimates prices the tasks of a list, each alone on the machine.
func Estimates(p *plan.Plan, w *Work, m *Machine, list plan.List) ([]Estimate, error) {
	c, err := newPricer(p, w, m)
	if err != nil {
		return nil, err
	}
	var out []Estimate
	for i := p.Lists[list].Start; i < p.Lists[list].End; i++ {
		out = append(out, c.estimate(&p.Tasks[i]))
	}
	return out, nil
}
