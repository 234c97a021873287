package engine

import (
	"fmt"
	"math"
	"time"

	"github.com/megatrain/mtc/runtime/plan"
)

// Training is what Train is to do.
type Training struct {
	Steps int64 // train until this many steps are done
	// Batch fills the tokens and targets [Batch*Seq] of a step (from 0); a target below 0 is
	// ignored. It runs while the device works on the step before.
	Batch func(step int64, tokens, targets []int32) error
	// Starts says where documents begin, for plans whose documents share rows; nil: rows are
	// documents.
	Starts Starts
	LR     func(step int64) float64 // learning rate of a step (from 0)
	Clip   float64                  // largest global gradient norm, 0: off
	// MaxSkipped ends the run after so many steps in a row without a finite gradient; 0: never.
	MaxSkipped int64

	EvalEvery int64 // evaluate after every so many steps, 0: never
	Eval      *Evaluation
	EvalOwed  bool  // evaluate before the first step too: the run ended when that was to be done
	SaveEvery int64 // call OnSave after every so many steps, 0: never

	Profile *Profile // times some steps; nil: none

	// Stop is asked after every step; true ends the run with the step just done.
	Stop  func() bool
	Hooks []Hook
}

// Hook is something attached to a run. Functions may be nil; an error ends the run. They run
// between steps, on the caller's goroutine.
type Hook struct {
	Name    string
	OnStep  func(m *Metrics) error // m is valid during the call
	OnDrain func(s State) error    // state is whole, nothing is in flight
	OnEval  func(s State, r EvalResult) error
	OnSave  func(s State) error // follows OnDrain
	OnStop  func(s State) error // last, after the final drain; not after a failure
}

// Metrics are one step's.
type Metrics struct {
	Step     int64 // number of this step, from 1
	Loss     float64
	GradNorm float64 // before clipping; 0 when the plan has no norms
	LR       float64
	Tokens   int64     // targets
	Skipped  bool      // nothing was updated
	Total    int64     // skipped steps so far
	Routers  []float64 // reports of the plan's routers (plan.Router.At); nil without any
	Time     time.Duration
}

// SkippedError ends a run whose gradients stay non-finite.
type SkippedError struct {
	Step  int64 // the last one
	InRow int64
	Loss  float64
}

func (e *SkippedError) Error() string {
	return fmt.Sprintf("the last %d steps had no finite loss and gradient (step %d: loss %v), so nothing was learned from them",
		e.InRow, e.Step, e.Loss)
}

// Halted ends a run for what is not of the device: no batch, or a hook that failed. The engine is
// drained, and its state that of its last step.
type Halted struct{ Err error }

func (h *Halted) Error() string { return h.Err.Error() }
func (h *Halted) Unwrap() error { return h.Err }

// halt drains and ends a run for err.
func (e *Engine) halt(err error) error {
	if err == nil {
		return nil
	}
	if failed := e.Drain(); failed != nil {
		return failed
	}
	return &Halted{err}
}

// Train runs steps until t.Steps are done or t.Stop says so. It ends drained, unless the device
// fails.
func (e *Engine) Train(t *Training) error {
	if t.EvalOwed && t.Eval != nil {
		if err := e.evaluate(t); err != nil {
			return err
		}
	}
	filled := int64(-1) // the step whose batch is in host memory
	for e.state.Step < t.Steps && !(t.Stop != nil && t.Stop()) {
		start := time.Now()
		step := e.state.Step
		if filled != step {
			if err := e.fill(t, step); err != nil {
				return e.halt(err)
			}
		}
		lr := t.LR(step)
		tokens := e.setScalars(step, lr, t.Clip)
		e.submitStep(t.Profile)

		// The other half of the host blocks is free: the step before is done.
		var noBatch error // told when the step in hand is done
		if next := step + 1; next < t.Steps && !due(next, t.EvalEvery) && !due(next, t.SaveEvery) {
			noBatch, filled = e.fill(t, next), next
		}
		r, err := e.results()
		if err != nil {
			return err
		}
		m := &e.metrics
		*m = Metrics{
			Step: step + 1, Loss: r[plan.ScalarLoss], GradNorm: r[plan.ScalarGradNorm], LR: lr,
			Tokens: tokens, Skipped: r[plan.ScalarSkip] != 0, Routers: e.host[step&1].routers, Time: time.Since(start),
		}
		e.state.Step++
		if m.Skipped {
			e.state.Skipped++
			e.state.InRow++
		} else {
			e.state.Updates++
			e.state.InRow = 0
		}
		m.Total = e.state.Skipped
		for i := range t.Hooks {
			if f := t.Hooks[i].OnStep; f != nil {
				if err := f(m); err != nil {
					return e.halt(err)
				}
			}
		}
		if noBatch != nil {
			return e.halt(noBatch)
		}
		if t.MaxSkipped > 0 && e.state.InRow >= t.MaxSkipped {
			return &SkippedError{Step: m.Step, InRow: e.state.InRow, Loss: m.Loss}
		}
		if err := e.pause(t); err != nil {
			return err
		}
	}
	return e.finish(t)
}

// due says whether something that comes every so many steps comes after step number n.
func due(n, every int64) bool { return every > 0 && n%every == 0 }

// pause drains, evaluates and saves where the step just done calls for it.
func (e *Engine) pause(t *Training) error {
	n := e.state.Step
	eval, save := t.Eval != nil && due(n, t.EvalEvery), due(n, t.SaveEvery)
	if !eval && !save {
		return nil
	}
	if err := e.drained(t); err != nil {
		return err
	}
	if eval {
		if err := e.evaluate(t); err != nil {
			return err
		}
	}
	if save {
		return e.call(t, func(h *Hook) func(State) error { return h.OnSave })
	}
	return nil
}

func (e *Engine) drained(t *Training) error {
	if err := e.Drain(); err != nil {
		return err
	}
	return e.call(t, func(h *Hook) func(State) error { return h.OnDrain })
}

func (e *Engine) evaluate(t *Training) error {
	r, err := e.Evaluate(t.Eval)
	if err != nil {
		return err
	}
	for i := range t.Hooks {
		if f := t.Hooks[i].OnEval; f != nil {
			if err := f(e.state, r); err != nil {
				return e.halt(err)
			}
		}
	}
	return nil
}

// finish drains and calls OnStop.
func (e *Engine) finish(t *Training) error {
	if err := e.drained(t); err != nil {
		return err
	}
	return e.call(t, func(h *Hook) func(State) error { return h.OnStop })
}

func (e *Engine) call(t *Training, which func(*Hook) func(State) error) error {
	for i := range t.Hooks {
		if f := which(&t.Hooks[i]); f != nil {
			if err := f(e.state); err != nil {
				return e.halt(fmt.Errorf("%s: %w", t.Hooks[i].Name, err))
			}
		}
	}
	return nil
}

// fill puts a step's batch into host memory.
func (e *Engine) fill(t *Training, step int64) error {
	h := &e.host[step&1]
	if err := t.Batch(step, h.tokens, h.targets); err != nil {
		return err
	}
	h.place(e.plan, step, t.Starts)
	return h.known(e.plan.Vocab, step)
}

// known refuses ids that a kernel would have to look for outside of the token table: data is
// checked where it is read, with its file and byte, so this only happens when that does not.
func (h *hostBlocks) known(vocab, step int64) error {
	if vocab == 0 {
		return nil // a plan without a token table
	}
	for i, id := range h.tokens {
		if uint64(uint32(id)) >= uint64(vocab) {
			return fmt.Errorf("batch of step %d: token %d is id %d, outside the model's vocabulary of %d", step, i, id, vocab)
		}
	}
	for i, id := range h.targets {
		if int64(id) >= vocab {
			return fmt.Errorf("batch of step %d: target %d is id %d, outside the model's vocabulary of %d", step, i, id, vocab)
		}
	}
	return nil
}

// setScalars writes the host's part of a step's scalars and returns its number of targets.
func (e *Engine) setScalars(step int64, lr, clip float64) int64 {
	h := &e.host[step&1]
	var n int64
	for _, t := range h.targets {
		if t >= 0 {
			n++
		}
	}
	clear(h.scalars)
	h.scalars[plan.ScalarStep] = float64(e.state.Updates + 1)
	h.scalars[plan.ScalarLR] = lr
	h.scalars[plan.ScalarInvTokens] = 1 / math.Max(1, float64(n))
	h.scalars[plan.ScalarMaxNorm] = clip
	h.scalars[plan.ScalarRoute] = 1
	h.scalars[plan.ScalarSkipped] = float64(e.state.Skipped)
	return n
}
