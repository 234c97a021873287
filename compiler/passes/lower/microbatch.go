package lower

import (
	"maps"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/tensor"
)

// microTokens is how many tokens a micro-batch of default size has at most on a processor, and
// at least on a GPU where there are so many.
const microTokens = 8192

// DefaultRows is the largest divisor of the batch's rows with at most a number of tokens, and at
// least one row.
func DefaultRows(batch, seq, tokens int64) int64 {
	for r := min(batch, max(1, tokens/seq)); r > 1; r-- {
		if batch%r == 0 {
			return r
		}
	}
	return 1
}

// Microbatch gives B and T their sizes: the rows of one micro-batch and the sequence length.
// Types of values are replaced and shape rules run again.
func Microbatch(m *ir.Model, o Options, diags *diag.List) {
	if m.Batch <= 0 || m.Seq <= 0 {
		diags.Errorf("MT0332", m.Span, "`%s` has no batch and sequence length", m.Name).
			Hint("add a `train` block with `batch` and `seq`")
		return
	}
	rows := o.rows(m)
	if rows < 1 || m.Batch%rows != 0 {
		diags.Errorf("MT0411", m.At("batch"), "a micro-batch of %d rows does not divide the batch of %d rows", rows, m.Batch).
			Hint("choose a divisor of %d: the default here is %d", m.Batch, o.defaultRows(m))
		return
	}
	if !sharesFit(m, rows, diags) {
		return
	}
	for _, v := range m.Values {
		v.Type = sized(v.Type, rows, m.Seq)
	}
	for _, u := range m.Units {
		s := size(u.Graph, rows, m.Seq)
		for v, t := range s.types {
			v.Type = t
		}
		for _, n := range u.Graph.Nodes {
			n.Call = s.calls[n]
		}
		for i, v := range u.Outputs {
			v.Type = u.Graph.Outputs[i].Type
		}
	}
}

// sharesFit checks that where an expert takes its share of a micro-batch, or is kept within some of it, that
// is at least one token.
func sharesFit(m *ir.Model, rows int64, diags *diag.List) bool {
	for _, r := range m.Routers {
		rate, tokens := r.Attr["rate"].Float, rows*m.Seq
		micro := r.Attr["pool"].Int == moe.Micro
		if r.Attr["kind"].Int != moe.Cutoff || !micro && r.Attr["capacity"].Num() < 0 || rate*float64(tokens) >= 1 {
			continue
		}
		what := "an expert's share of a micro-batch"
		if !micro {
			what = "the capacity of an expert in a micro-batch"
		}
		diags.Errorf("MT0309", r.Span, "%s of %d tokens is less than one token, at a rate of %.4g", what, tokens, rate).
			Note("a micro-batch has %d of the %d rows of a step", rows, m.Batch).
			Hint("take a larger micro-batch, `--micro-batch ROWS`, or a higher rate")
		return false
	}
	return true
}

func (o Options) rows(m *ir.Model) int64 {
	if o.Rows != 0 {
		return o.Rows
	}
	return o.defaultRows(m)
}

func (o Options) prefill(m *ir.Model) int64 {
	if o.Prefill > 0 {
		return min(o.Prefill, m.Seq)
	}
	return min(defaultPrefill, m.Seq)
}

// sizing is a graph's types and inferred calls for given sizes of B and T.
type sizing struct {
	op.Sizes
	types map[*ir.Value]tensor.Type
	calls map[*ir.Node]*op.Call
}

// size infers a graph again with other sizes; the graph does not change.
func size(g *ir.Graph, batch, seq int64) *sizing { return sizeOf(g, batch, seq, false) }

// sizeFull is size for generation, where a mixture of experts has room for all rows that could
// be: none is dropped because of the tokens that run with it.
func sizeFull(g *ir.Graph, batch, seq int64) *sizing { return sizeOf(g, batch, seq, true) }

func sizeOf(g *ir.Graph, batch, seq int64, full bool) *sizing {
	s := &sizing{
		Sizes: op.Sizes{Batch: batch, Seq: seq},
		types: map[*ir.Value]tensor.Type{},
		calls: map[*ir.Node]*op.Call{},
	}
	for _, v := range g.Inputs {
		s.types[v] = sized(v.Type, batch, seq)
		if full && v.Full.N > 0 {
			s.types[v] = tensor.Type{DType: v.Type.DType, Shape: s.types[v].Shape.WithLast(v.Full)}
		}
	}
	for _, n := range g.Nodes {
		c := &op.Call{Def: n.Call.Def, Inputs: n.Call.Inputs, Attr: n.Call.Attr, DType: n.Call.DType}
		if most, ok := c.Attr["most"]; ok && full {
			c.Attr = maps.Clone(c.Attr)
			c.Attr["slots"] = most
		}
		for _, v := range n.Inputs {
			c.In = append(c.In, s.types[v])
		}
		mustInfer(c)
		retype(c)
		s.calls[n], s.types[n.Out] = c, c.Out
	}
	return s
}

// sized replaces the leading dims of an activation, which are B and T.
func sized(t tensor.Type, batch, seq int64) tensor.Type {
	shape := append(tensor.Shape(nil), t.Shape...)
	shape[0] = tensor.Dim{Name: "B", N: batch}
	shape[1] = tensor.Dim{Name: "T", N: seq}
	return tensor.Type{DType: t.DType, Shape: shape}
}
