package engine

import (
	"fmt"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// Profile times every task of some steady steps. What is timed is enqueued beside the tasks
// and read at the end of the run, so that a step that is timed differs from others by two
// marks a task, and allocates nothing either.
type Profile struct {
	plan  *plan.Plan
	marks device.Marks
	skip  int64   // steady steps to pass over
	steps []int64 // numbers (from 1) of the steps that were timed, in order
	per   int     // tasks of a step
}

// StepTimes is when a step's tasks ran. Start and End go by place in the steady list, in
// nanoseconds; those of all steps have one origin.
type StepTimes struct {
	Step       int64 // its number, from 1
	Start, End []int64
}

// NewProfile prepares to time `steps` steady steps after the first `skip` of them, in which
// caches warm up. Close gives back what it takes.
func (e *Engine) NewProfile(skip, steps int64) (*Profile, error) {
	clock, ok := e.dev.(device.Clock)
	if !ok {
		return nil, fmt.Errorf("%s has no clock", e.dev.Name())
	}
	r := e.plan.Lists[plan.Steady]
	p := &Profile{plan: e.plan, skip: skip, per: r.End - r.Start, steps: make([]int64, 0, steps)}
	lanes := make([]device.Lane, 0, 2*int(steps)*p.per)
	for range steps {
		for i := r.Start; i < r.End; i++ {
			l := e.plan.Tasks[i].Lane
			lanes = append(lanes, l, l)
		}
	}
	var err error
	p.marks, err = clock.Marks(lanes)
	return p, err
}

// take says whether the steady step of this number is timed, and from which mark on.
func (p *Profile) take(step int64) (at int, ok bool) {
	if p == nil {
		return 0, false
	}
	if p.skip > 0 {
		p.skip--
		return 0, false
	}
	if len(p.steps) == cap(p.steps) {
		return 0, false
	}
	at = 2 * p.per * len(p.steps)
	p.steps = append(p.steps, step)
	return at, true
}

// Read returns the times of the steps that were timed. The engine has been drained.
func (p *Profile) Read() ([]StepTimes, error) {
	all, err := p.marks.Read()
	if err != nil {
		return nil, err
	}
	out := make([]StepTimes, len(p.steps))
	for k, step := range p.steps {
		s := StepTimes{Step: step, Start: make([]int64, p.per), End: make([]int64, p.per)}
		for i := range p.per {
			at := 2 * (k*p.per + i)
			s.Start[i], s.End[i] = all[at], all[at+1]
		}
		out[k] = s
	}
	return out, nil
}

// Close gives back the device's marks.
func (p *Profile) Close() { p.marks.Close() }
