package moe

import "slices"

// Sample is how many experts tokens had, by how hard they were to predict.
type Sample struct {
	Tokens int      `json:"tokens"`
	Layers []string `json:"layers"`
	// Bins hold equally many tokens each, by ascending loss.
	Bins []SampleBin `json:"bins"`
}

// SampleBin is the mean loss of some tokens, in nats, and how many experts each router gave them.
type SampleBin struct {
	Loss float64   `json:"loss"`
	Fan  []float64 `json:"fan"` // by layer
}

// sampleBins is how many bins a sample has.
const sampleBins = 12

// SampleOf sorts tokens by loss; fan is by token, layer.
func SampleOf(layers []string, loss []float64, fan [][]float64) Sample {
	s := Sample{Tokens: len(loss), Layers: layers}
	order := make([]int, len(loss))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case loss[a] < loss[b]:
			return -1
		case loss[a] > loss[b]:
			return 1
		}
		return 0
	})
	bins := min(sampleBins, len(order))
	for k := range bins {
		part := order[k*len(order)/bins : (k+1)*len(order)/bins]
		b := SampleBin{Fan: make([]float64, len(layers))}
		for _, t := range part {
			b.Loss += loss[t] / float64(len(part))
			for l, f := range fan[t] {
				b.Fan[l] += f / float64(len(part))
			}
		}
		s.Bins = append(s.Bins, b)
	}
	return s
}
