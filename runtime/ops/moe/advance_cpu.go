package moe

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

func advanceCPU(c device.CPU, a *device.Args) {
	r := routerOf(a)
	s := stateAt(c, a.P[1], int64(r.Experts), r.hist())
	skip := c.F64(a.P[0], plan.NumScalars)[plan.ScalarSkip] != 0
	tokens := float64(s.counters[CountTokens])

	rep := s.report
	clear(rep)
	e := int64(r.Experts)
	lists := rep[ReportLists:]
	for i := range e {
		lists[i] = float64(s.count[i])
		if r.Kind == Cutoff {
			lists[e+i] = float64(s.cutoff(i, r.Start))
		}
	}
	if !skip && tokens > 0 {
		r.move(s, tokens)
	}
	for i := range e {
		lists[2*e+i] = float64(s.quantile[i])
		lists[3*e+i] = float64(s.bias[i])
	}
	for i, n := range s.fan {
		lists[4*e+int64(i)] = float64(n)
	}
	for i, n := range s.place {
		lists[4*e+FanOuts(e)+int64(i)] = float64(n)
	}
	rep[ReportTokens] = tokens
	rep[ReportDropped] = float64(s.counters[CountDropped])
	rep[ReportFlooded] = float64(s.counters[CountFlooded])
	rep[ReportUpdates] = s.control[ControlUpdates]
	rep[ReportNonCausal] = s.control[ControlNonCausal]
	if s.counters[CountNonCausal] > 0 {
		rep[ReportChoice] = 1
	}
	if skip {
		rep[ReportSkipped] = 1
	}
	if tokens > 0 {
		rep[ReportBalance] = float64(r.Alpha) * float64(s.losses[LossBalance]) * LossPart / tokens
		rep[ReportZ] = float64(r.ZLoss) * float64(s.losses[LossZ]) * LossPart / tokens
	}
	clear(s.losses)
	clear(s.counters)
	clear(s.count)
	clear(s.fan)
	clear(s.place)
	clear(s.hist)
}

// move is the update of a state by the counts of a step with tokens.
func (r *router) move(s *state, tokens float64) {
	n := s.control[ControlUpdates]
	s.control[ControlUpdates] = n + 1
	s.control[ControlNonCausal] += float64(s.counters[CountNonCausal])
	switch {
	case r.Kind == Cutoff:
		beta := r.decay(n)
		weight := beta*s.control[ControlWeight] + (1 - beta)
		s.control[ControlWeight] = weight
		for e := range s.threshold {
			q, ok := TopQuantile(s.hist[e*Buckets:(e+1)*Buckets], float64(r.Rate)*tokens)
			if !ok {
				q = float64(s.threshold[e]) // logits that are no numbers: the loss is none either
			}
			s.quantile[e] = float32(q)
			s.average[e] = beta*s.average[e] + (1-beta)*q
			s.threshold[e] = float32(s.average[e] / weight)
		}
	case r.Balance == LossFree:
		var sum int64
		for _, k := range s.count {
			sum += int64(k)
		}
		for e, k := range s.count {
			switch d := sum - int64(k)*int64(r.Experts); {
			case d > 0:
				s.bias[e] += r.U
			case d < 0:
				s.bias[e] -= r.U
			}
		}
	case r.Balance == QuantileTop:
		mean := 0.0
		for e := range s.bias {
			q, _ := TopQuantile(s.hist[e*Buckets:(e+1)*Buckets], float64(r.K)*tokens/float64(r.Experts))
			s.quantile[e] = float32(q)
			mean -= q
		}
		mean /= float64(r.Experts)
		for e := range s.bias {
			s.bias[e] = float32(-float64(s.quantile[e]) - mean)
		}
	}
}

// decay is the weight of the past after n updates. With a causal warm-up the average reaches
// over a twentieth of them at first, and the first one is all of it.
func (r *router) decay(n float64) float64 {
	beta := float64(r.EMA)
	if r.Causal > 0 && n < float64(r.Causal) {
		beta = min(beta, 1-1/(1+0.05*n))
	}
	return beta
}
