package plan

// LoRA says how low-rank adapters (Hu et al., arXiv 2106.09685) are laid beside frozen weights:
// with each weight W [out, in] of a linear go A [Rank, in] and B [out, Rank], and its product is
// x W^T + Alpha/Rank (x A^T) B^T.
type LoRA struct {
	Rank     int64
	Alpha    float64
	Adapters []Adapter
}

// Adapter names the parameters of an adapter by their paths.
type Adapter struct{ Weight, A, B string }

// Scale is the factor of every adapter's product.
func (l *LoRA) Scale() float64 { return l.Alpha / float64(l.Rank) }

// On reports whether a plan trains adapters alone.
func (l *LoRA) On() bool { return l.Rank > 0 }

// Trained is how many slabs learn: they stand first.
func (p *Plan) Trained() int {
	for i := range p.Slabs {
		if p.Slabs[i].Frozen {
			return i
		}
	}
	return len(p.Slabs)
}

// NumTrained is the parameters that learn.
func (p *Plan) NumTrained() int64 {
	var n int64
	for i := range p.Slabs[:p.Trained()] {
		for _, q := range p.Slabs[i].Params {
			size := int64(1)
			for _, d := range q.Shape {
				size *= d
			}
			n += size
		}
	}
	return n
}
