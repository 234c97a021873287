package moe

import "math"

// choose lets experts take their share of each pool: those of the highest logits. Padding
// passes where it lies above the least of them.
func (s *selection) choose() {
	if s.Pool == Step {
		share := float64(s.Rate) * float64(s.state.counters[CountTokens])
		s.cut(func(e int64) float32 {
			q, _ := TopQuantile(s.state.hist[e*Buckets:(e+1)*Buckets], share)
			return float32(q)
		})
		return
	}
	pool := s.n
	if s.Pool == Sequence {
		pool = int64(s.Seq)
	}
	s.experts(func(e int64) {
		for lo := int64(0); lo < s.n; lo += pool {
			hi := lo + pool
			k := share(float64(s.Rate), s.counted(lo, hi))
			s.lists[e] = s.highest(s.lists[e], e, lo, hi, k, true)
		}
	})
}

// share is rate * n, rounded down; the rate was rounded to f32.
func share(rate float64, n int64) int64 { return int64(rate * float64(n) * (1 + 1e-6)) }

// highest appends the k counted tokens of [lo, hi) of the highest logits of an expert, ties by
// earlier token, in ascending order; with padding also what padding lies above the least.
func (s *selection) highest(out []int32, e, lo, hi, k int64, padding bool) []int32 {
	if k <= 0 {
		return out
	}
	var keys []uint32
	for t := lo; t < hi; t++ {
		if s.counts(t) {
			keys = append(keys, orderKey(s.logits[t*s.e+e]))
		}
	}
	least, ties := kth(keys, k)
	for t := lo; t < hi; t++ {
		key := orderKey(s.logits[t*s.e+e])
		switch {
		case key > least && (padding || s.counts(t)):
			out = append(out, int32(t))
		case key == least && ties > 0 && s.counts(t):
			out = append(out, int32(t))
			ties--
		}
	}
	return out
}

// bound keeps an expert's counted tokens within the capacity: too many are cut to the highest,
// too few are filled up by the next ones.
func (s *selection) bound() {
	k := float64(s.Rate) * float64(s.counted(0, s.n)) * (1 + 1e-6) // as in share
	least, most := int64(k*(1-float64(s.Capacity))), int64(k*(1+float64(s.Capacity)))
	s.experts(func(e int64) {
		var have int64
		for _, t := range s.lists[e] {
			if s.counts(int64(t)) {
				have++
			}
		}
		switch {
		case have > most:
			s.lists[e] = s.highest(s.lists[e][:0], e, 0, s.n, most, false)
		case have < least:
			s.lists[e] = s.highest(s.lists[e][:0], e, 0, s.n, least, false)
		}
	})
}

// topK gives each token its K experts. With a quantile balance it returns the value that each
// token would have taken next.
func (s *selection) topK() (next []float64) {
	biased := s.Balance == LossFree || s.Balance == QuantileTop
	if s.Balance == QuantileTop {
		next = make([]float64, s.n)
	}
	score := make([]float64, s.e)
	taken := make([]bool, s.e)
	for t := range s.n {
		row := s.logits[t*s.e : (t+1)*s.e]
		if biased {
			s.scores(score, row)
			for i := range score {
				score[i] += float64(s.state.bias[i])
			}
		} else {
			for i, x := range row {
				score[i] = float64(x) // scores ascend with logits
			}
		}
		clear(taken)
		for range s.K {
			if e := best(score, taken); e >= 0 {
				taken[e] = true
				s.lists[e] = append(s.lists[e], int32(t))
			}
		}
		if next != nil {
			if e := best(score, taken); e >= 0 {
				next[t] = score[e]
			}
		}
	}
	return next
}

// best is the highest score not taken, the first of equal ones; NaN is lowest.
func best(score []float64, taken []bool) int {
	at := -1
	for i, x := range score {
		if !taken[i] && (at < 0 || x > score[at] || math.IsNaN(score[at]) && !math.IsNaN(x)) {
			at = i
		}
	}
	return at
}
