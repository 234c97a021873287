package telemetry

import (
	"math"
	"time"
)

// ETA estimates the time a run still needs from the time of its steps. The zero value is ready.
//
// Steps are averaged with weights that halve about every 20 steps, corrected for the start as
// in Adam (arXiv 1412.6980, section 3). The first step is left out as long as it is the only
// one: it touches memory for the first time. Evaluations and saves count as what they added
// per step so far.
type ETA struct {
	mean, weight float64 // of step times
	steps        int64
	extra        float64 // seconds outside of steps
}

// decay gives a half-life of 20 steps.
var decay = math.Pow(0.5, 1.0/20)

// Step adds a step that took the given time.
func (e *ETA) Step(seconds float64) {
	e.steps++
	if e.steps == 2 {
		e.mean, e.weight = 0, 0 // forget the first one
	}
	e.mean = decay*e.mean + (1-decay)*seconds
	e.weight = decay*e.weight + (1 - decay)
}

// Extra adds time spent between steps: an evaluation, a checkpoint.
func (e *ETA) Extra(seconds float64) { e.extra += seconds }

// Left is the time for the given number of steps, -1 when no step has been timed.
func (e *ETA) Left(steps int64) time.Duration {
	if e.steps == 0 {
		return -1
	}
	per := e.mean/e.weight + e.extra/float64(e.steps)
	s := per * float64(max(0, steps))
	if s > math.MaxInt64/1e9 {
		return math.MaxInt64
	}
	return time.Duration(s * 1e9)
}
