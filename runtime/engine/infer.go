package engine

import (
	"fmt"
	"math"

	"github.com/megatrain/mtc/runtime/plan"
)

// Infer runs tokens that start at position pos of one sequence and returns the logits
// [Vocab] after the last of them, valid until the next call. The caches must hold positions
// 0 to pos-1, left by earlier calls. Long inputs run in chunks of Plan.Prefill; one token
// runs the decode list.
func (e *Engine) Infer(tokens []int32, pos int) ([]float32, error) {
	if len(tokens) == 0 || pos < 0 || int64(pos+len(tokens)) > e.plan.Seq {
		return nil, fmt.Errorf("positions %d to %d are outside the %d that the model was compiled for", pos, pos+len(tokens), e.plan.Seq)
	}
	for len(tokens) > 0 {
		n := min(len(tokens), int(e.plan.Prefill))
		l := plan.Prefill
		if n == 1 {
			l = plan.Decode
		}
		copy(e.gen.tokens, tokens[:n])
		for i := range min(n, len(e.gen.positions)) {
			e.gen.positions[i] = int32(pos + i)
		}
		cs := e.lists[l][0]
		for i := range cs {
			if b := cs[i].bind; b != nil {
				b.Rows, b.Pos = n, pos
			}
		}
		e.submit(cs)
		if err := e.sync(); err != nil {
			return nil, err
		}
		tokens, pos = tokens[n:], pos+n
	}
	for i, h := range e.gen.half {
		e.gen.logits[i] = math.Float32frombits(uint32(h) << 16)
	}
	return e.gen.logits, nil
}
