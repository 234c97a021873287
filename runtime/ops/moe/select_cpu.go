package moe

import (
	"slices"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// selection is what a selection works on.
type selection struct {
	router
	c       device.CPU
	n, e    int64
	logits  []float32
	targets []int32 // nil: every token counts
	state   *state
	mode    int
	lists   [][]int32 // by expert: its tokens, ascending
}

// mode is what the step's scalars say of routing.
func modeOf(c device.CPU, scalars device.Ptr) int {
	if s := c.F64(scalars, plan.NumScalars); s != nil {
		return int(s[plan.ScalarRoute])
	}
	return RouteFrozen
}

func (s *selection) counts(t int64) bool { return s.targets == nil || s.targets[t] >= 0 }

// counted is the number of tokens of a range that count.
func (s *selection) counted(lo, hi int64) (n int64) {
	for t := lo; t < hi; t++ {
		if s.counts(t) {
			n++
		}
	}
	return n
}

func (s *selection) experts(body func(e int64)) {
	s.c.Parallel(s.e, 1, func(lo, hi int64) {
		for e := lo; e < hi; e++ {
			body(e)
		}
	})
}

func newSelection(c device.CPU, a *device.Args) *selection {
	s := &selection{router: routerOf(a), c: c}
	s.n, s.e = int64(s.Rows), int64(s.Experts)
	s.logits, s.targets = c.F32(a.P[0], s.n*s.e), c.I32(a.P[1], s.n)
	s.mode = modeOf(c, a.P[2])
	s.state = stateAt(c, a.P[3], s.e, s.hist())
	return s
}

func observeCPU(c device.CPU, a *device.Args) {
	s := newSelection(c, a)
	y := c.I32(a.P[4], s.n)
	for t := range s.n {
		y[t] = 0
		if s.counts(t) {
			y[t] = 1
		}
	}
	if s.mode != RouteFrozen {
		s.observe(nil)
	}
}

// observe counts what the quantiles of the step are read from, and its tokens: logits, or for
// a quantile balance how far a score lies above what the token would have taken next.
func (s *selection) observe(next []float64) {
	s.state.counters[CountTokens] += int32(s.counted(0, s.n))
	if s.state.hist == nil {
		return
	}
	var score []float64
	if next != nil {
		score = make([]float64, s.n*s.e)
		for t := range s.n {
			s.scores(score[t*s.e:(t+1)*s.e], s.logits[t*s.e:(t+1)*s.e])
		}
	}
	s.experts(func(e int64) {
		h := s.state.hist[e*Buckets : (e+1)*Buckets]
		for t := range s.n {
			if !s.counts(t) {
				continue
			}
			x := s.logits[t*s.e+e]
			if next != nil {
				x = float32(score[t*s.e+e] - next[t])
			}
			if b := Bucket(x); b >= 0 {
				h[b]++
			}
		}
	})
}

func selectCPU(c device.CPU, a *device.Args) {
	s := newSelection(c, a)
	s.lists = make([][]int32, s.e)
	var next []float64
	choice := false
	switch {
	case s.Kind == TopK:
		next = s.topK()
	case s.mode == RouteTrain && s.Pool != NoPool && (s.Choice < 0 || s.state.control[ControlUpdates] < float64(s.Choice)):
		choice = true
		s.choose()
	default:
		s.cut(s.threshold)
		if s.mode == RouteTrain && s.Capacity >= 0 {
			s.bound()
		}
	}
	dropped := s.drop(s.n * int64(s.Slots))
	s.write(a.P[4])
	if s.mode == RouteFrozen {
		if dropped > 0 {
			s.state.report[ReportFrozen] += float64(dropped)
		}
		return
	}
	if !s.Observed {
		s.observe(next)
	}
	s.tally(choice, dropped)
}

// threshold is the cutoff of an expert in this step.
func (s *state) cutoff(e int64, start float32) float32 {
	if s.control[ControlUpdates] > 0 {
		return s.threshold[e]
	}
	return start
}

func (s *selection) threshold(e int64) float32 { return s.state.cutoff(e, s.Start) }

// cut gives each expert the tokens above its cutoff.
func (s *selection) cut(cutoff func(e int64) float32) {
	s.experts(func(e int64) {
		x := cutoff(e)
		for t := range s.n {
			if s.logits[t*s.e+e] > x {
				s.lists[e] = append(s.lists[e], int32(t))
			}
		}
	})
}

// drop removes the pairs of the lowest logits above the number that memory is made for.
func (s *selection) drop(most int64) (dropped int64) {
	var total int64
	for _, l := range s.lists {
		total += int64(len(l))
	}
	if total <= most {
		return 0
	}
	keys := make([]uint32, 0, total)
	for e, l := range s.lists {
		for _, t := range l {
			keys = append(keys, orderKey(s.logits[int64(t)*s.e+int64(e)]))
		}
	}
	least, ties := kth(keys, most)
	// Ties are kept by earlier token, then earlier expert.
	var equal []int64
	for e, l := range s.lists {
		for _, t := range l {
			if i := int64(t)*s.e + int64(e); orderKey(s.logits[i]) == least {
				equal = append(equal, i)
			}
		}
	}
	slices.Sort(equal)
	last := equal[ties-1]
	for e, l := range s.lists {
		s.lists[e] = slices.DeleteFunc(l, func(t int32) bool {
			i := int64(t)*s.e + int64(e)
			key := orderKey(s.logits[i])
			return key < least || key == least && i > last
		})
	}
	return total - most
}

// write lays the routing out.
func (s *selection) write(p device.Ptr) {
	r := routingAt(s.c, p, s.n, s.e, int64(s.Slots))
	clear(r.first)
	var at int32
	for e, l := range s.lists {
		r.offsets[e] = at
		for _, t := range l {
			r.token[at], r.expert[at] = t, int32(e)
			r.first[t+1]++
			at++
		}
	}
	r.offsets[s.e] = at
	for t := range s.n {
		r.first[t+1] += r.first[t]
	}
	fill := make([]int32, s.n)
	for i := range at {
		t := r.token[i]
		r.rows[r.first[t]+fill[t]] = i
		fill[t]++
	}
}

// tally adds to the counts of the step.
func (s *selection) tally(choice bool, dropped int64) {
	st := s.state
	st.counters[CountDropped] += int32(dropped)
	if dropped > 0 {
		st.counters[CountFlooded]++
	}
	if choice {
		st.counters[CountNonCausal] += int32(s.n)
	}
	fan := make([]int32, s.n)
	for e, l := range s.lists {
		for _, t := range l {
			fan[t]++
			if s.counts(int64(t)) {
				st.count[e]++
			}
		}
	}
	for t, f := range fan {
		if s.counts(int64(t)) {
			st.fan[min(int(f), len(st.fan)-1)]++
			at := t % s.Seq * Places / s.Seq
			st.place[at] += f
			st.place[Places+at]++
		}
	}
}
