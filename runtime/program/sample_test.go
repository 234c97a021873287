package program

import (
	"math"
	"testing"
)

// TestSampleFrequencies: picks follow softmax(logits / temperature) cut to the top k.
func TestSampleFrequencies(t *testing.T) {
	logits := []float32{1, 3, -2, 3, 0.5}
	for _, c := range []struct {
		temperature float64
		k           int64
		allowed     []int
	}{
		{1, 0, []int{0, 1, 2, 3, 4}},
		{2, 3, []int{0, 1, 3}},
		{0.5, 1, []int{1}}, // of equal ones the first
		{0.7, 9, []int{0, 1, 2, 3, 4}},
		{0, 0, []int{1}},
	} {
		want, sum := make([]float64, len(logits)), 0.0
		for _, i := range c.allowed {
			want[i] = 1
			if c.temperature > 0 {
				want[i] = math.Exp(float64(logits[i]) / c.temperature)
			}
			sum += want[i]
		}
		s := newSampler(&request{temperature: c.temperature, topK: c.k, seed: 5})
		const n = 40000
		count := make([]float64, len(logits))
		for range n {
			id, ok := s.pick(logits)
			if !ok {
				t.Fatal("these are logits")
			}
			count[id]++
		}
		for i := range count {
			p := want[i] / sum
			if got := count[i] / n; math.Abs(got-p) > 4*math.Sqrt(p*(1-p)/n)+1e-12 {
				t.Errorf("temperature %v, top %d: token %d picked %.4f of the time, want %.4f", c.temperature, c.k, i, got, p)
			}
		}
	}
}

// TestSampleSeed: the same seed gives the same picks, another one others.
func TestSampleSeed(t *testing.T) {
	logits := make([]float32, 64)
	draw := func(seed int64) (out [32]int32) {
		s := newSampler(&request{temperature: 1, seed: seed})
		for i := range out {
			out[i], _ = s.pick(logits)
		}
		return
	}
	one, again, two := draw(1), draw(1), draw(2)
	if one != again || one == two {
		t.Error("seeds do not decide")
	}
}

// Ids that the tokenizer does not have are never drawn, however likely the model has them.
func TestUnknownIdsAreNeverDrawn(t *testing.T) {
	logits := []float32{9, 1, 8, 0.5, 9}
	for _, temperature := range []float64{0, 0.5, 5} {
		for _, k := range []int64{0, 1, 3} {
			s := newSampler(&request{temperature: temperature, topK: k, seed: 3, known: []bool{false, true, false, true, false}})
			for range 200 {
				if id, _ := s.pick(logits); id != 1 && id != 3 {
					t.Fatalf("temperature %v, top %d: drew %d", temperature, k, id)
				}
			}
		}
	}
}

// TestLogitsThatAreNone: no token is made up where the model gives no probabilities; rows that are no
// tokens may hold anything.
func TestLogitsThatAreNone(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		name   string
		logits []float32
		known  []bool
		want   int32 // at temperature 0; -1: none
	}{
		{"finite", []float32{1, 2, 0}, nil, 1},
		{"NaN first", []float32{nan, 2, 3}, nil, -1},
		{"NaN last", []float32{1, 2, nan}, nil, -1},
		{"all NaN", []float32{nan, nan, nan}, nil, -1},
		{"infinite", []float32{1, inf, 2}, nil, -1},
		{"one ruled out", []float32{1, -inf, 2}, nil, 2},
		{"all ruled out", []float32{-inf, -inf, -inf}, nil, -1},
		{"the largest there are", []float32{math.MaxFloat32, -math.MaxFloat32, 0}, nil, 0},
		{"NaN in a row without a token", []float32{nan, 2, 3}, []bool{false, true, true}, 2},
		{"infinity in a row without a token", []float32{1, 2, inf}, []bool{true, true, false}, 1},
		{"no tokens", []float32{1, 2, 3}, []bool{false, false, false}, -1},
	} {
		for _, temperature := range []float64{0, 1e-300, 0.8, math.Inf(1)} {
			s := newSampler(&request{temperature: temperature, known: c.known, seed: 3})
			id, ok := s.pick(c.logits)
			if ok != (c.want >= 0) || ok && (temperature < 1e-9 && id != c.want || math.IsInf(float64(c.logits[id]), 0)) {
				t.Errorf("%s at temperature %v: %d, %v", c.name, temperature, id, ok)
			}
		}
	}
}
