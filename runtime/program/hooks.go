package program

import (
	"fmt"

	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/telemetry"
)

// progress prints and records steps and evaluations.
func (s *session) progress() engine.Hook {
	return engine.Hook{Name: "progress", OnStep: s.onStep, OnEval: s.onEval}
}

func (s *session) onStep(m *engine.Metrics) error {
	s.tokens += m.Tokens
	s.eta.Step(m.Time.Seconds())
	l := telemetry.Step{
		Step: m.Step, Loss: m.Loss, LR: m.LR, GradNorm: m.GradNorm,
		Tokens: s.tokens, Count: m.Tokens, Seconds: m.Time.Seconds(), Skipped: m.Skipped,
		Router: routerLoss(s.plan, m),
	}
	for _, f := range s.feeds {
		f.Step(l)
	}
	fmt.Fprintln(s.outw, l.Line(s.train.Steps, s.eta.Left(s.train.Steps-m.Step)))
	if err := s.metrics.Step(l); err != nil {
		return err
	}
	return s.routing.step(m)
}

func (s *session) onEval(st engine.State, r engine.EvalResult) error {
	s.evaluated, s.evalLoss = st.Step, r.Loss
	s.eta.Extra(r.Time.Seconds())
	l := telemetry.Eval{Step: st.Step, Loss: r.Loss, Tokens: r.Tokens, Seconds: r.Time.Seconds()}
	for _, f := range s.feeds {
		f.Eval(l)
	}
	fmt.Fprintln(s.outw, l.Line(s.train.Steps))
	if err := first(s.routed(st.Step), s.metrics.Eval(l)); err != nil {
		return err
	}
	return first(s.keepBest(st, r), s.answer(st.Step))
}

// routed prints and records what the routers did until a step.
func (s *session) routed(step int64) error {
	if s.routing == nil {
		return nil
	}
	if err := s.routing.evaluated(s.engine); err != nil {
		return err
	}
	fmt.Fprint(s.outw, s.routing.line(step, s.train.Steps))
	return s.routing.write(step)
}

// checkpoints writes them.
func (s *session) checkpoints() engine.Hook {
	return engine.Hook{Name: "checkpoint", OnSave: s.save}
}
