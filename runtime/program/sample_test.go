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
			count[s.pick(logits)]++
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
			out[i] = s.pick(logits)
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
				if id := s.pick(logits); id != 1 && id != 3 {
					t.Fatalf("temperature %v, top %d: drew %d", temperature, k, id)
				}
			}
		}
	}
}
