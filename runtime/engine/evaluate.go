package engine

import (
	"math"
	"time"

	"github.com/megatrain/mtc/runtime/plan"
)

// Evaluation is data to evaluate on.
type Evaluation struct {
	Batches int64
	Batch   func(i int64, tokens, targets []int32) error // as Training.Batch
	Starts  Starts                                       // as Training.Starts
	Route   float64                                      // plan.ScalarRoute: how routers route, and whether they count it; 0: causal, uncounted
}

// EvalResult is a loss weighted by target.
type EvalResult struct {
	Loss   float64 // mean over all targets, in nats
	Tokens int64
	Time   time.Duration
}

// Evaluate runs the evaluation list over all batches. Weights must be whole: call Drain
// first. It changes no state; without a batch it is Halted.
func (e *Engine) Evaluate(v *Evaluation) (EvalResult, error) {
	start := time.Now()
	h := &e.host[0]
	var sum, count float64
	for i := range v.Batches {
		if err := v.Batch(i, h.tokens, h.targets); err != nil {
			return EvalResult{}, &Halted{err}
		}
		h.place(e.plan, i, v.Starts)
		clear(h.scalars)
		h.scalars[plan.ScalarInvTokens] = 1
		h.scalars[plan.ScalarRoute] = v.Route
		e.submit(e.lists[plan.Eval][0])
		if err := e.sync(); err != nil {
			return EvalResult{}, err
		}
		if n := h.results[plan.ScalarTokens]; n > 0 {
			sum += h.results[plan.ScalarLoss] * n
			count += n
		}
	}
	r := EvalResult{Loss: math.NaN(), Tokens: int64(count), Time: time.Since(start)}
	if count > 0 {
		r.Loss = sum / count
	}
	return r, nil
}
