package engine

import "github.com/megatrain/mtc/runtime/plan"

// Starts fills, for each position of the rows of a step or batch, the position in its row where
// its document begins. Plans whose documents share rows ask for it.
type Starts func(i int64, starts []int32)

// split views the host block of a plan whose documents share rows: for each micro-batch
// targets, starts and places in documents.
func (h *hostBlocks) split(p *plan.Plan) {
	n := p.Micros * p.Rows * p.Seq
	h.blocks, h.targets, h.starts = h.targets, make([]int32, n), make([]int32, n)
}

// place puts targets, and where documents begin, where the device reads them. Without starts a
// row is one document.
func (h *hostBlocks) place(p *plan.Plan, i int64, starts Starts) {
	if h.blocks == nil {
		return
	}
	clear(h.starts)
	if starts != nil {
		starts(i, h.starts)
	}
	n := p.Rows * p.Seq
	for m := range p.Micros {
		to := h.blocks[3*m*n:][:3*n]
		copy(to, h.targets[m*n:][:n])
		from := h.starts[m*n:][:n]
		copy(to[n:], from)
		for k, s := range from {
			to[2*n+int64(k)] = int32(int64(k)%p.Seq) - s
		}
	}
}
