package program

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"time"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/engine"
)

// startBest finds the lowest evaluation loss of the run so far. One of steps that a resumed run
// makes anew is of a history that is left, and losses on other data are not to be compared.
func (s *session) startBest(errw io.Writer) error {
	s.best = math.Inf(1)
	if s.from == nil {
		return nil
	}
	c, err := checkpoint.Best(s.out)
	if err != nil || c == nil {
		return err
	}
	if c.State.EvalLoss == nil || c.State.Step > s.from.State.Step {
		return nil
	}
	if was := c.State.EvalData; was != "" && s.eval != nil && was != s.evalData() {
		fmt.Fprintf(errw, "note: %s was found on other evaluation data; the next evaluation begins it anew\n", filepath.Join(s.out, checkpoint.BestFolder))
		return nil
	}
	s.best = *c.State.EvalLoss
	return nil
}

// evalData names what is evaluated on.
func (s *session) evalData() string {
	return fmt.Sprintf("%s %d", s.feed.EvalID, s.train.EvalSteps)
}

// keepBest writes the weights down where an evaluation found them better than any before. The
// engine is drained.
func (s *session) keepBest(st engine.State, r engine.EvalResult) error {
	if s.noSave || s.noBest || s.train.EvalEvery == 0 || !(r.Loss < s.best) {
		return nil
	}
	if err := s.hold(st); err != nil {
		return err
	}
	start := time.Now()
	state := slabs{e: s.engine, readOnly: true}
	files := checkpoint.FromSlabs(s.plan, state.view)
	state.guard(files)
	record := s.state(st)
	record.EvalLoss, record.EvalData = &r.Loss, s.evalData()
	if err := first(checkpoint.SaveBest(s.out, record, files), state.end()); err != nil {
		return err
	}
	s.best, s.wrote = r.Loss, true
	s.eta.Extra(time.Since(start).Seconds())
	fmt.Fprintf(s.outw, "best %d/%d  %s\n", st.Step, s.train.Steps, filepath.Join(s.out, checkpoint.BestFolder))
	return nil
}
