package compiler

import (
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/ops/moe"
)

// What the kernels of a GPU count in 32 bits, and blocks that a grid has in a direction. Package all of
// the ops shows that every launch fits below these.
const (
	gpuTokens   = 1 << 24     // of a micro-batch
	gpuSeq      = 1<<22 - 64  // of a row: attention has a block for 64 of them
	gpuVocab    = 1 << 27     // rows of a table: three passes of a sort by 9 bits
	gpuHeadRows = 1<<32 - 1   // heads of all tokens of a micro-batch: attention has a warp for each
	gpuPairs    = 1<<31 - 256 // rows of a micro-batch's experts
)

// gpuLimits refuses, at its line, what the kernels of a GPU do not take. Values have the sizes of a micro-batch.
func gpuLimits(s *state) {
	m := s.res.Model
	if s.opts.Target != "cuda" || m.Train == nil || len(m.Values) == 0 || len(m.Values[0].Type.Shape) < 2 {
		return
	}
	rows := m.Values[0].Type.Shape[0].N
	tokens := rows * m.Seq
	switch {
	case m.Seq > gpuSeq:
		s.diags.Errorf("MT0405", m.At("seq"), "on a GPU a sequence has at most %d tokens, and `seq` is %d", int64(gpuSeq), m.Seq)
		return
	case tokens > gpuTokens:
		s.diags.Errorf("MT0405", m.At("batch"), "on a GPU a micro-batch has at most %d tokens, and this one has %d rows of %d", int64(gpuTokens), rows, m.Seq).
			Hint("the most is `--micro-batch %d`, as far as that divides the batch", gpuTokens/m.Seq)
		return
	}
	for _, r := range m.Routers {
		if tokens*r.Slots > gpuPairs {
			s.diags.Errorf("MT0405", r.Span, "on a GPU the experts of `%s` have at most %d rows in a micro-batch, and there is memory for %d tokens of %d", r.Path, int64(gpuPairs), tokens, r.Slots).
				Hint("take a smaller `--micro-batch`")
			return
		}
	}
	seen := map[source.Span]bool{}
	for _, u := range m.Units {
		for _, n := range u.Graph.Nodes {
			if seen[n.Span] {
				continue
			}
			switch c := n.Call; {
			case c.Def.Name == "embed" && c.Int("rows") > gpuVocab:
				s.diags.Errorf("MT0405", n.Span, "on a GPU a table has at most %d rows, and this one has %d", int64(gpuVocab), c.Int("rows"))
			case c.Def.Name == "attention" && c.Int("heads")*tokens > gpuHeadRows:
				s.diags.Errorf("MT0405", n.Span, "on a GPU attention has at most %d heads of %d tokens", gpuHeadRows/tokens, tokens).
					Hint("take a smaller `--micro-batch`")
			default:
				continue
			}
			seen[n.Span] = true
		}
	}
}

// gpuExperts refuses more experts than the kernels of a router count.
func gpuExperts(s *state) {
	if s.opts.Target != "cuda" {
		return
	}
	for _, r := range s.res.Model.Routers {
		if r.Experts > moe.MaxExperts {
			s.diags.Errorf("MT0405", r.Span, "on a GPU a mixture has at most %d experts, and `%s` has %d", moe.MaxExperts, r.Path, r.Experts)
			return
		}
	}
}
