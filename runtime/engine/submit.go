package engine

import (
	"errors"
	"fmt"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// submit enqueues a list's commands on their lanes, in order. It looks nothing up, allocates
// nothing and waits for nothing but room in the queues.
func (e *Engine) submit(cs []command) { e.submitTimed(cs, nil, 0) }

// submitTimed is submit with, from number `at` on, a mark before and one after what each
// command does; nil marks: none.
func (e *Engine) submitTimed(cs []command, marks device.Marks, at int) {
	for i := range cs {
		c := &cs[i]
		q := c.queue
		if c.kept != nil && marks == nil {
			if c.kept.first == c {
				e.submitKept(c.kept)
			}
			continue
		}
		if c.tag != nil {
			c.tag.Tag(c.task)
		}
		for _, w := range c.waits {
			q.Wait(w)
		}
		if marks == nil {
			e.enqueue(q, c)
		} else {
			marks.Set(at + 2*i)
			e.enqueue(q, c)
			marks.Set(at + 2*i + 1)
		}
		if c.record != nil {
			q.Record(c.record)
		}
	}
}

// enqueue enqueues what a command does, without its waits and its record.
func (e *Engine) enqueue(q device.Queue, c *command) {
	switch c.kind {
	case plan.Compute:
		c.fn(q, c.bind)
	case plan.Norm:
		e.steps.Norm(q, c.norm)
	case plan.Accumulate:
		e.steps.Accumulate(q, c.add)
	case plan.Reduce:
		e.steps.Reduce(q, c.reduce)
	case plan.Update:
		e.steps.Update(q, c.update)
	case plan.Round:
		e.steps.Round(q, c.round)
	default:
		q.Copy(c.dst, c.src, c.bytes)
	}
}

// submitStep enqueues the next training step; a profile times it if it wants it.
func (e *Engine) submitStep(p *Profile) {
	l := plan.First
	if e.pending {
		l = plan.Steady
	}
	cs := e.lists[l][e.state.Step&1]
	e.pending = true
	if l == plan.Steady {
		if at, ok := p.take(e.state.Step + 1); ok {
			e.submitTimed(cs, p.marks, at)
			return
		}
	}
	e.submit(cs)
}

// results waits for the step just submitted and returns its scalars.
func (e *Engine) results() ([]float64, error) {
	parity := e.state.Step & 1
	if err := e.events[parity][e.plan.ResultsEvent].Sync(); err != nil {
		return nil, e.explain(err)
	}
	return e.host[parity].results, nil
}

// Drain does the updates that the last step left to the next one, and waits for all lanes:
// afterwards weights and moments are whole and nothing is in flight.
func (e *Engine) Drain() error {
	if e.pending {
		e.submit(e.lists[plan.Drain][e.state.Step&1])
		e.pending = false
	}
	return e.sync()
}

func (e *Engine) sync() error { return e.explain(e.dev.Sync()) }

// explain adds to a device's failure the task it happened in.
func (e *Engine) explain(err error) error {
	if err == nil {
		return nil
	}
	var f *device.Failure
	if errors.As(err, &f) && f.Tag >= 0 {
		return &TaskError{Task: e.Describe(f.Tag) + e.upTo(f.Tag), Err: err}
	}
	return err
}

// upTo names the last of the tasks that a device took all at once, of which it knows the first alone.
func (e *Engine) upTo(task int) string {
	for _, cs := range e.lists[plan.Steady] {
		for i := range cs {
			if k := cs[i].kept; k != nil && k.again != nil && len(k.members) > 1 && k.first.task == task {
				return ", or one after it up to task " + e.Describe(k.members[len(k.members)-1].task)
			}
		}
	}
	return ""
}

// TaskError is a failure of the device during a task.
type TaskError struct {
	Task string // number, what it does, and the line of the model
	Err  error
}

func (e *TaskError) Error() string { return fmt.Sprintf("task %s failed: %v", e.Task, e.Err) }

// Unwrap returns the device's failure.
func (e *TaskError) Unwrap() error { return e.Err }
