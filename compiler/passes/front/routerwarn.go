package front

import (
	"fmt"

	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/moe"
)

// warn reports a constant of a router that does nothing, or not what it seems, once a line of text.
func (r *routerCheck) warn(at source.Span, format string, args ...any) *diag.Diagnostic {
	s := r.s
	if s.told == nil {
		s.told = map[source.Span]bool{}
	}
	if s.told[at] || s.full() {
		return &diag.Diagnostic{}
	}
	s.told[at] = true
	return s.Diags.Warnf(codeRouterIdle, at, format, args...)
}

// warnings looks at constants that are each possible, against the run's length and each other.
func (r *routerCheck) warnings(experts int64, rows op.Value, rowsAt source.Span, mean float64) {
	run := r.runLength()
	if r.attr["kind"].Int == moe.TopK {
		r.warnTopK(experts)
		return
	}
	rate, at := r.arg("rate")
	if rate.Num() == 1 {
		hint := fmt.Sprintf("a lower rate, 1.0 / %d for one expert a token; or a block without `moe`", experts)
		if experts == 1 {
			hint = "more experts and a lower rate, or a block without `moe`"
		}
		r.warn(at, "with a rate of 1 every expert aims at every token: the router chooses nothing").Hint("%s", hint)
	}
	if rows.Kind == op.VInt && float64(rows.Int) == mean && rows.Int < experts {
		r.warn(rowsAt, "`rows = %d` is the mean itself: every second micro-batch has more pairs, and drops the lowest", rows.Int).
			Hint("leave `rows` out for half more than the mean, or write %d", rows.Int+1)
	}
	r.warnWarmup(run)
	r.warnWindow(run)
	if c := r.attr["capacity"].Num(); c >= 0 && r.s.Model.Batch > 0 {
		_, at := r.arg("capacity")
		if share := rate.Num() * float64(r.s.Model.Batch*r.s.Model.Seq); c*share < 1 {
			r.warn(at, "of a share of at most %.4g tokens a capacity of %.4g leaves no room: each expert takes the same number of tokens, as in an expert's choice, which sees later ones", share, c).
				Hint("a capacity of 0.5 is the published one; without it an expert takes what passes")
		}
	}
}

// runLength is the run's steps, 0 where the text does not say.
func (r *routerCheck) runLength() int64 {
	if t := r.s.Model.Train; t != nil && t.Run.Epochs == 0 {
		return t.Run.Steps
	}
	return 0
}

func (r *routerCheck) warnWarmup(run int64) {
	if run == 0 || r.ctor.Name != "threshold" {
		return
	}
	warm, at := r.arg("warmup")
	choice, causal := r.attr["choice"].Int, r.attr["causal"].Int
	lr := r.s.Model.Train.Run.LR
	switch {
	case choice >= run:
		r.warn(at, "the warm-up takes %d steps, and the run has %d: all of it routes by an expert's choice, which sees later tokens, and no step by cutoffs, as evaluation and generation do", choice, run).
			Hint("%s", shorter(warm, run))
	case causal > run:
		r.warn(at, "the warm-up takes %d steps, and the run has %d: the average's window never reaches that of `ema`", causal, run).
			Hint("%s", shorter(warm, run))
	case lr.Kind == "wsd" && max(choice, causal) > run-lr.Decay && lr.Decay < run:
		r.warn(at, "the warm-up takes %d steps, and the learning rate falls from step %d on: little is learned with the routing that is used later", max(choice, causal), run-lr.Decay).
			Hint("%s", shorter(warm, run))
	}
}

// shorter is a warm-up of a fifth of a run.
func shorter(warm op.Value, run int64) string {
	return fmt.Sprintf("about a fifth of the run: `%s(%d)`, or more steps", warm.Str, max(1, run/5))
}

// warnWindow compares the steps that an average reaches over with the run's.
func (r *routerCheck) warnWindow(run int64) {
	ema, at := r.arg("ema")
	if run < 20 || r.attr["causal"].Int >= run {
		return // a trial, or an average that grows with the run
	}
	if window := 1 / (1 - ema.Num()); window > float64(run) {
		r.warn(at, "an `ema` of %s averages over %.4g steps, and the run has %d: cutoffs are the mean of all quantiles so far, and lag behind", ema, window, run).
			Hint("a window of a twentieth of the run is `ema = %.3g`", max(0, 1-20/float64(run)))
	}
}

func (r *routerCheck) warnTopK(experts int64) {
	k, at := r.arg("k")
	b, balanceAt := r.arg("balance")
	switch {
	case experts > 1 && k.Int == experts:
		r.warn(at, "every token goes to all %d experts: the router chooses nothing, and there is nothing to balance", experts).
			Hint("take fewer than %d", experts)
	case b.Str == "aux" && b.Args[0].Num() == 0:
		r.warn(balanceAt, "a balance of weight 0 balances nothing").Hint("`aux(0.01)`, or `balance = none`")
	case b.Str == "lossfree" && b.Args[0].Num() >= 1:
		r.warn(balanceAt, "scores lie between 0 and 1, and a bias that moves by %s a step orders the experts by itself", b.Args[0]).
			Hint("`lossfree(0.001)`")
	}
}
