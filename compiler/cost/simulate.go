package cost

import (
	"fmt"
	"math"
	"slices"
	"sync"

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
	defer s.release()
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
	defer s.release()
	t := &Timeline{List: list, Machine: m.Name, First: p.Lists[list].Start}
	t.Tasks = make([]Estimate, 0, p.Lists[list].End-p.Lists[list].Start)
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
	alone   []float64 // by task: seconds; those of lists that were submitted
	priced  [plan.NumLists]bool
	runs    []simRun
	waits   []int32                  // runs that runs wait for, one after another
	queues  [device.NumLanes][]int32 // runs, by lane
	next    [device.NumLanes]int     // of its queue: the first that has not begun
	busy    [device.NumLanes]bool
	job     [device.NumLanes]int32                         // the run of a lane that is busy
	left    [device.NumLanes]float64                       // seconds of it, alone
	speeds  [1 << device.NumLanes][device.NumLanes]float64 // by the set of lanes that are busy
	last    [device.NumLanes]int32                         // run that ended last, -1
	events  [2][]int32                                     // by parity and event: the run that records it, -1
	steps   int
	results []float64 // when each step's results were there
	order   []int32   // runs in order of their start
}

type simRun struct {
	task, step int32
	from, to   int32 // of the sim's waits: its own
	after      int32
	done       bool
	start, end float64
	ready      float64
}

// idleSims are those that simulate nothing: their memory, which is tens of bytes to a task and step, serves the next one.
var idleSims = sync.Pool{New: func() any { return new(sim) }}

func newSim(c *pricer) *sim {
	s := idleSims.Get().(*sim)
	*s = sim{
		c: c, alone: slices.Grow(s.alone[:0], len(c.p.Tasks))[:len(c.p.Tasks)], runs: s.runs[:0], waits: s.waits[:0],
		queues: s.queues, events: s.events, results: s.results[:0], order: s.order[:0],
	}
	for l := range s.queues {
		s.queues[l], s.last[l] = s.queues[l][:0], -1
	}
	for k := range s.events {
		s.events[k] = slices.Grow(s.events[k][:0], c.p.Events)[:c.p.Events]
		for i := range s.events[k] {
			s.events[k][i] = -1
		}
	}
	for set := range s.speeds {
		var now running
		for l := range now {
			now[l] = set>>l&1 == 1
		}
		s.speeds[set] = c.m.speeds(&now)
	}
	return s
}

// release gives the memory back.
func (s *sim) release() {
	s.c = nil
	idleSims.Put(s)
}

// step submits a list and runs until its results are there.
func (s *sim) step(l plan.List) error {
	p, parity := s.c.p, s.steps&1
	result := int32(-1)
	if n := p.Lists[l].End - p.Lists[l].Start; cap(s.runs)-len(s.runs) < n { // a few more steps are as long
		s.runs, s.order = slices.Grow(s.runs, 4*n), slices.Grow(s.order, 4*n)
	}
	for i := p.Lists[l].Start; i < p.Lists[l].End; i++ {
		t := &p.Tasks[i]
		if !s.priced[l] {
			s.alone[i] = s.c.estimate(t).Seconds
		}
		id, from := int32(len(s.runs)), int32(len(s.waits))
		for _, w := range t.Waits {
			if e := s.events[parity^w.Back&1][w.Event]; e >= 0 {
				s.waits = append(s.waits, e)
			}
		}
		s.runs = append(s.runs, simRun{task: int32(i), step: int32(s.steps), from: from, to: int32(len(s.waits)), after: -1})
		s.queues[t.Lane] = append(s.queues[t.Lane], id)
		if t.Event >= 0 {
			s.events[parity][t.Event] = id
			if t.Event == p.ResultsEvent {
				result = id
			}
		}
	}
	s.priced[l] = true
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
		if s.next[l] < len(s.queues[l]) || s.busy[l] {
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
	set := 0
	for l := range s.queues {
		if s.busy[l] || s.next[l] < len(s.queues[l]) && s.begin(l) {
			set |= 1 << l
		}
	}
	if set == 0 {
		return false
	}
	speeds := &s.speeds[set]
	step := math.Inf(1)
	for l, busy := range s.busy {
		if busy {
			step = min(step, s.left[l]/speeds[l])
		}
	}
	if math.IsInf(step, 1) {
		return false
	}
	s.now += step
	for l, busy := range s.busy {
		if !busy {
			continue
		}
		// The one that set the step is done, whatever the rounding says.
		if left := s.left[l] - step*speeds[l]; left > 1e-12 {
			s.left[l] = left
			continue
		}
		r := &s.runs[s.job[l]]
		r.end, r.done = s.now, true
		s.last[l], s.busy[l] = s.job[l], false
	}
	return true
}

// begin starts the first task of a lane if its waits are over; false if they are not.
func (s *sim) begin(l int) bool {
	id := s.queues[l][s.next[l]]
	r := &s.runs[id]
	after, at := s.last[l], -1.0
	if after >= 0 {
		at = s.runs[after].end
	}
	for _, w := range s.waits[r.from:r.to] {
		x := &s.runs[w]
		if !x.done {
			return false
		}
		r.ready = max(r.ready, x.end)
		if x.end > at {
			after, at = w, x.end
		}
	}
	s.next[l]++
	r.start, r.after = s.now, after
	s.order = append(s.order, id)
	s.job[l], s.left[l], s.busy[l] = id, s.alone[r.task], true
	return true
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
