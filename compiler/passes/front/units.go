package front

import (
	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Units checks what the units of a model must be: an embedding first, a head last, weights in
// these and in blocks only, every value read, tables that fit.
func Units(s *State) {
	if len(s.units) == 0 || s.logit == nil || s.logit.bad {
		if !s.Diags.HasErrors() {
			panic("forward has no value, and nothing says why")
		}
		return
	}
	u := &unitPass{s: s, said: map[source.Span]bool{}}
	u.ends()
	u.between()
	if !s.Diags.HasErrors() {
		u.unused()
	}
	u.tables()
	if !s.Diags.HasErrors() {
		u.head()
		s.uncalled(s.target.model)
	}
}

// uncalled warns of blocks that no text of the model calls, not even in a branch not taken.
func (s *State) uncalled(m *ast.Model) {
	called := map[string]bool{}
	note := func(c *ast.Call) { called[c.Callee.Name] = true }
	for _, fw := range m.Forwards {
		walkCalls(fw.Body, note)
	}
	for _, b := range m.Blocks {
		walkCalls(b.Body, note)
	}
	for _, b := range m.Blocks {
		if !called[b.Name.Name] && !s.values[b.Name.Name] {
			s.Diags.Warnf(codeUncalled, b.Name.Span, "nothing calls block `%s`", b.Name.Name).
				Hint("call it in `forward`, or remove it")
		}
	}
}

type unitPass struct {
	s    *State
	said map[source.Span]bool
}

func (p *unitPass) once(at source.Span) bool {
	if p.said[at] {
		return false
	}
	p.said[at] = true
	return true
}

// ends checks that forward starts with an embedding and ends with a head.
func (p *unitPass) ends() {
	s := p.s
	first, last := s.units[0], s.units[len(s.units)-1]
	ret := s.logitAt
	switch {
	case s.logit.unit == nil:
		s.errorf(codeHead, ret, "`forward` returns its input").Hint("return logits: `return head: linear(x, V)`")
	case !first.segment:
		s.errorf(codeBetween, first.unit.Span, "block `%s` stands before any embedding", first.unit.Name).
			Hint("look the tokens up first: `x = wte: embed(tokens, V, D)`")
	case !last.segment:
		s.errorf(codeHead, last.unit.Span, "the head stands in `forward`, after the last block").
			Hint("end with `return head: linear(x, V)`")
	case len(s.units) == 1:
		s.errorf(codeHead, ret, "nothing stands between the embedding and the logits").
			Hint("end with `return head: linear(x, V)`")
	}
	for _, b := range s.units[1:] {
		for _, m := range b.unit.Inputs {
			if m == s.Model.Values[0] || m == s.Model.Values[1] {
				at := firstReader(b, m)
				if p.once(at) {
					s.errorf(codeBetween, at, "`%s` is read after the embedding", m.Name).
						Hint("look it up before the first block and pass the result on")
				}
			}
		}
	}
}

// between checks that ops between blocks own no weights.
func (p *unitPass) between() {
	for _, b := range p.s.units {
		if b.unit.Kind != ir.GlueUnit {
			continue
		}
		for _, n := range b.unit.Graph.Nodes {
			if len(n.Call.Weights) > 0 && p.once(n.Span) {
				p.s.errorf(codeBetween, n.Span, "`%s` owns weights between two blocks", n.Call.Def.Name).
					Hint("put it into a block: what streams is a block's weights, the embedding's and the head's")
			}
		}
	}
}

// unused reports values that nothing reads: their weights would never get a gradient.
func (p *unitPass) unused() {
	s := p.s
	read := map[*ir.Value]bool{s.logit.m: true}
	for _, b := range s.units {
		for _, m := range b.unit.Inputs {
			read[m] = true
		}
	}
	for _, b := range s.units {
		g := b.unit.Graph
		local := map[*ir.Value]bool{}
		for _, n := range g.Nodes {
			for _, in := range n.Inputs {
				local[in] = true
			}
		}
		for i, o := range g.Outputs {
			if read[b.unit.Outputs[i]] {
				local[o] = true
			}
		}
		for _, n := range g.Nodes {
			if local[n.Out] || !p.once(n.Span) {
				continue
			}
			name := "the result of `" + n.Call.Def.Name + "`"
			if n.Out.Name != "" && n.Out.Name != n.Call.Def.Name {
				name = "`" + n.Out.Name + "`"
			}
			d := s.errorf(codeUnused, n.Span, "nothing reads %s", name)
			if len(n.Weights) > 0 {
				d.Hint("remove it, or use it: its weights would never be trained")
			} else {
				d.Hint("remove it, or use it")
			}
		}
	}
}

// tables finds the token table and checks the position tables.
func (p *unitPass) tables() {
	s := p.s
	tokens, position := s.Model.Values[0], s.Model.Values[1]
	var token *ir.Node
	for _, b := range s.units {
		for _, n := range b.unit.Graph.Nodes {
			if len(n.Weights) == 0 || n.Weights[0].Role != op.Embedding || len(n.Inputs) == 0 || len(n.Call.In) == 0 || n.Call.In[0].DType != tensor.I32 {
				continue
			}
			rows := n.Weights[0].Shape[0]
			switch n.Inputs[0] {
			case b.inputs[tokens]:
				if token == nil {
					token, s.Model.Vocab = n, rows.N
				} else if rows.N != s.Model.Vocab && p.once(n.Span) {
					s.errorf(codeShape, n.Span, "two tables for `tokens` have %d and %d rows", s.Model.Vocab, rows.N).
						Also(token.Span, "the first one").
						Hint("ids must fit both: give them one size")
				}
			case b.inputs[position]:
				if s.Model.Seq > rows.N && p.once(n.Span) {
					d := s.errorf(codePositions, n.Span, "the position table has %s rows, and sequences have seq = %d positions", rowsText(rows), s.Model.Seq)
					if t := s.Model.Train; t != nil {
						d.Also(t.Span, "seq is set here")
					}
					d.Hint("set `seq` to at most %d, or make the table longer", rows.N)
				}
			}
		}
	}
	if token == nil && !s.Diags.HasErrors() {
		s.errorf(codeHead, headSpan(s.target.model.Forwards[0].Span, "forward"), "nothing reads `tokens`").
			Hint("start with `x = wte: embed(tokens, V, D)`")
	}
}

func rowsText(d tensor.Dim) string { return d.String() }

// head checks that the logits come from a linear, followed by nothing but ops on single
// elements: they run in chunks of rows, fused with the loss.
func (p *unitPass) head() {
	s := p.s
	n := s.logit.g.Node
	for n != nil && n.Call.Def.Name != "linear" {
		if !elementwise(n) || n.Inputs[0].Node == nil {
			d := s.errorf(codeHead, n.Span, "`%s` cannot stand between the last linear and the loss", opText(s, n))
			d.Hint("the logits are a linear's, followed by ops on single elements such as `softcap` or a factor")
			return
		}
		n = n.Inputs[0].Node
	}
	if n == nil {
		s.errorf(codeHead, s.logitAt, "the logits do not come from a linear").Hint("end with `return head: linear(x, V)`")
		return
	}
	if width := n.Out.Type.Shape.Last(); width.N != s.Model.Vocab {
		d := s.errorf(codeShape, n.Span, "the logits have %s classes, and the token table has %d rows", width, s.Model.Vocab).Mark("%s", n.Out.Type)
		d.Hint("a logit for each token: `linear(x, V)`")
	}
}

func opText(s *State, n *ir.Node) string {
	info := s.nodes[n]
	if info.op != "" {
		return info.op
	}
	if info.written != "" {
		return info.written
	}
	return n.Call.Def.Name
}

func elementwise(n *ir.Node) bool {
	c := n.Call
	return c.Def.RowWise && len(n.Inputs) == 1 && len(c.Weights) == 0 && len(c.Saved) == 0 && c.Out.Shape.Equal(c.In[0].Shape)
}
