package program

import (
	"math"
	"math/rand/v2"
	"sort"
)

// sampler picks tokens from logits.
type sampler struct {
	temperature float64
	topK        int
	rng         *rand.Rand
	known       []bool // ids that may be drawn; nil: all
	ids         []int32
	weights     []float64
}

func newSampler(r *request) *sampler {
	return &sampler{temperature: r.temperature, topK: int(r.topK), known: r.known, rng: rand.New(rand.NewPCG(uint64(r.seed), golden))}
}

// may says whether an id is a token: a padded vocabulary has rows that no text belongs to.
func (s *sampler) may(id int) bool { return s.known == nil || s.known[id] }

// pick draws from softmax(logits / temperature), among the topK largest logits when topK is
// not 0; equal logits count by id. Temperature 0 takes the largest. It is false where logits are no
// probabilities: one is NaN or positive infinity, or none is finite.
func (s *sampler) pick(logits []float32) (id int32, ok bool) {
	best := -1
	for i, l := range logits {
		if !s.may(i) {
			continue
		}
		if l != l || l > math.MaxFloat32 {
			return 0, false
		}
		if best < 0 || l > logits[best] {
			best = i
		}
	}
	if best < 0 || logits[best] < -math.MaxFloat32 {
		return 0, false
	}
	if s.temperature == 0 {
		return int32(best), true
	}
	s.ids = s.ids[:0]
	for i := range logits {
		if s.may(i) && logits[i] >= -math.MaxFloat32 {
			s.ids = append(s.ids, int32(i))
		}
	}
	if s.topK > 0 && s.topK < len(s.ids) {
		sort.SliceStable(s.ids, func(i, j int) bool { return logits[s.ids[i]] > logits[s.ids[j]] })
		s.ids = s.ids[:s.topK]
	}
	s.weights = s.weights[:0]
	var sum float64
	for _, id := range s.ids {
		w := math.Exp((float64(logits[id]) - float64(logits[best])) / s.temperature)
		sum += w
		s.weights = append(s.weights, w)
	}
	at := s.rng.Float64() * sum
	for i, w := range s.weights {
		if at -= w; at < 0 {
			return s.ids[i], true
		}
	}
	return int32(best), true
}
