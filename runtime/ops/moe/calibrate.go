package moe

import (
	"encoding/binary"
	"math"
)

// Counted reads the counts of a router's state from its bytes, as a report whose cutoffs are
// those that routed, and whose quantiles are those of the logits counted.
func Counted(state []byte, experts int64, hist bool, rate float64) Report {
	l := StateOf(experts, hist)
	i32 := func(off, i int64) float64 {
		return float64(int32(binary.LittleEndian.Uint32(state[off+4*i:])))
	}
	list := func(off, n int64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = i32(off, int64(i))
		}
		return out
	}
	r := Report{
		Tokens: i32(l.Counters, CountTokens), Dropped: i32(l.Counters, CountDropped), Flooded: i32(l.Counters, CountFlooded),
		Updates: f64At(state, l.Control+8*ControlUpdates), NonCausal: f64At(state, l.Control+8*ControlNonCausal),
		Count: list(l.Count, experts), Fan: list(l.Fan, FanOuts(experts)),
		Pairs: list(l.Place, Places), Places: list(l.Place+4*Places, Places),
	}
	for e := range experts {
		r.Threshold = append(r.Threshold, float64(math.Float32frombits(binary.LittleEndian.Uint32(state[l.Threshold+4*e:]))))
		r.Bias = append(r.Bias, float64(math.Float32frombits(binary.LittleEndian.Uint32(state[l.Bias+4*e:]))))
		q := r.Threshold[e]
		if hist {
			counts := make([]int32, Buckets)
			for b := range counts {
				counts[b] = int32(binary.LittleEndian.Uint32(state[l.Hist+4*(e*Buckets+int64(b)):]))
			}
			if x, ok := TopQuantile(counts, rate*r.Tokens); ok {
				q = x
			}
		}
		r.Quantile = append(r.Quantile, q)
	}
	return r
}

// SetCutoffs makes quantiles the cutoffs of a state, and what its average stands at.
func SetCutoffs(state []byte, experts int64, hist bool, quantile []float64) {
	l := StateOf(experts, hist)
	weight := f64At(state, l.Control+8*ControlWeight)
	if f64At(state, l.Control+8*ControlUpdates) == 0 {
		putF64(state, l.Control+8*ControlUpdates, 1)
	}
	if !(weight > 0) {
		weight = 1
		putF64(state, l.Control+8*ControlWeight, weight)
	}
	for e, q := range quantile {
		at := int64(e)
		putF64(state, l.Average+8*at, q*weight)
		binary.LittleEndian.PutUint32(state[l.Threshold+4*at:], math.Float32bits(float32(q)))
		binary.LittleEndian.PutUint32(state[l.Quantile+4*at:], math.Float32bits(float32(q)))
	}
}

// ClearCounts clears what a step counts anew.
func ClearCounts(state []byte, experts int64, hist bool) {
	l := StateOf(experts, hist)
	clear(state[l.Counters:l.Report])
}

func f64At(b []byte, off int64) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(b[off:]))
}

func putF64(b []byte, off int64, x float64) {
	binary.LittleEndian.PutUint64(b[off:], math.Float64bits(x))
}
