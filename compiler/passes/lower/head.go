package lower

import (
	"slices"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Defaults of the head's chunks. On a processor the logits of a chunk should stay near its
// cache, but each chunk reads the last weight three times and its gradient twice, so with
// fewer rows than minChunk memory would set the pace. A GPU has no such cache and needs more
// rows to be busy (defaults.go).
const (
	logitsBytes = 16 << 20
	minChunk    = 256
)

// pitchElems is what the rows of logits are padded to. The matrix library of a GPU takes its fast
// kernels only where rows begin at multiples of 16 bytes and are a multiple of 8 elements long, which those
// of a vocabulary like 50257 do not; whole cache lines serve every other kernel too. So the
// weight has spare rows (spareRows), and the products run over them.
const pitchElems = 64

func pitchOf(width int64) int64 { return (width + pitchElems - 1) / pitchElems * pitchElems }

// logitsWeight is the weight of the op that makes a graph's output, if that op can do with rows that
// lie apart; else nil.
func logitsWeight(g *ir.Graph) *ir.Weight {
	if n := g.Outputs[0].Node; n != nil && n.Call.Def.Pitched {
		return n.Weights[0]
	}
	return nil
}

// Head makes the head's functions over the loss: Loss does forward, loss and backward of the
// last linear and what follows it chunk by chunk, so that the logits never exist for all
// rows; EvalLoss does the same without gradients.
func Head(l *Lowering) {
	for _, t := range l.tmpls {
		if t.kind != ir.HeadUnit {
			continue
		}
		pre, tail := splitHead(t.Graph, l.diags)
		if l.diags.HasErrors() {
			return
		}
		t.funcs = append(t.funcs, l.lossFunction(t, pre, tail, true), l.lossFunction(t, pre, tail, false))
	}
}

// lossFunction makes Loss (train) or EvalLoss.
func (l *Lowering) lossFunction(t *tmpl, pre, tail []*ir.Node, train bool) *fn {
	all := size(t.Graph, l.Program.Rows, l.Program.Model.Seq)
	b := newBuilder(l, t, all, all)
	partials := b.fixed("partials", tensor.Type{Shape: tensor.Shape{{N: 4}}}, pin{region: ir.RPartials, filled: true, locked: true})
	partials.mutable = true
	b.insert(fillCall(4), t.Span, nil, []*value{partials})
	b.forward(pre)

	rows := all.Rows()
	chunk, chunked := l.chunkRows(t.Graph.Outputs[0].Type, rows)
	if chunked {
		b.inLoop = true
		b.sizes = size(t.Graph, 1, chunk)
		b.emit = b.sizes
	}
	logits, tail, limit := capped(t.Graph.Outputs[0], tail)
	pitch := b.logitsPitch(logits, tail)
	b.forward(tail)
	b.crossEntropy(logits, partials, train, pitch, limit)
	kind := plan.EvalLoss
	if train {
		kind = plan.Loss
		b.backward(tail)
	}
	if b.inLoop {
		b.closeLoop()
		b.inLoop, b.sizes, b.emit = false, all, all
	}
	if train {
		b.backward(pre)
		b.finishInputs()
		b.zeroUnwritten()
	}
	b.insts = b.residuals(b.insts, nil)
	if train {
		b.insts = b.squares(b.insts)
	}
	f := b.function(kind, b.insts, nil)
	if chunked {
		f.loop = ir.Loop{Rows: rows, Chunk: chunk}
	}
	return f
}

// chunkRows is the number of rows of a chunk: a power of two within the limits, or all rows.
// Whether there is a loop over chunks at all does not depend on the device, so that the code
// is the same for all: where a device has room for all rows at once, the loop runs once.
func (l *Lowering) chunkRows(logits tensor.Type, rows int64) (chunk int64, chunked bool) {
	width := logits.Shape.Last().N
	chunk = l.chunkFor(rows, width*tensor.F32.Size(), logitsBytes, minChunk)
	chunked = chunk < rows
	if logits.DType == tensor.BF16 {
		chunk = l.chunkFor(rows, width*logits.DType.Size(), l.opts.gpuLogits(), gpuMinChunk)
	}
	return chunk, chunked
}

func (l *Lowering) chunkFor(rows, rowBytes, limit, least int64) int64 {
	if l.opts.LogitsBytes > 0 {
		limit = l.opts.LogitsBytes
	}
	if l.opts.MinChunk > 0 {
		least = l.opts.MinChunk
	}
	chunk := int64(1)
	for chunk < rows && (chunk < least || 2*chunk*rowBytes <= limit) {
		chunk *= 2
	}
	return min(chunk, rows)
}

// capped finds a soft cap that makes the logits of the loss alone: the loss takes it along, in forward and in
// backward, so that what it makes is never stored. It returns what the cap reads, the nodes without it, and
// its bound; 0: there is none.
func capped(out *ir.Value, tail []*ir.Node) (logits *ir.Value, rest []*ir.Node, limit float64) {
	n := out.Node
	if n == nil || n.Call.Def.Name != "softcap" || !slices.Contains(tail, n) || n.Inputs[0].Node == nil || !slices.Contains(tail, n.Inputs[0].Node) {
		return out, tail, 0
	}
	for _, m := range tail {
		if m != n && (slices.Contains(m.Inputs, out) || slices.Contains(m.Inputs, n.Inputs[0])) {
			return out, tail, 0
		}
	}
	rest = slices.DeleteFunc(slices.Clone(tail), func(m *ir.Node) bool { return m == n })
	return n.Inputs[0], rest, n.Call.Float("cap")
}

// logitsPitch chooses the elements from one row of logits to the next and tells the op that
// makes them; 0: rows are dense. Rows lie apart only where that op alone and the loss touch them.
func (b *builder) logitsPitch(out *ir.Value, tail []*ir.Node) int64 {
	width := out.Type.Shape.Last().N
	pitch := pitchOf(width)
	n := out.Node
	if pitch == width || logitsWeight(b.t.Graph) == nil || !slices.Contains(tail, n) {
		return 0
	}
	for _, m := range tail {
		if slices.Contains(m.Inputs, out) {
			return 0
		}
	}
	c := b.emit.calls[n]
	c.Consts = append(c.Consts, op.IntConst("Pitch", pitch), op.IntConst("Wide", pitch))
	return pitch
}

// spread gives a value rows that lie pitch elements apart; 0 leaves it as it is.
func (v *value) spread(pitch int64) {
	if pitch == 0 {
		return
	}
	rows := v.bytes / v.rowBytes
	v.rowBytes = pitch * v.typ.DType.Size()
	v.bytes = rows * v.rowBytes
}

// crossEntropy appends the loss of the logits, under a soft cap where limit is not 0; in training its gradient too.
func (b *builder) crossEntropy(out *ir.Value, partials *value, train bool, pitch int64, limit float64) {
	logits := b.values[out]
	logits.spread(pitch)
	typ := b.sizes.types[out]
	ids := tensor.Type{DType: tensor.I32, Shape: typ.Shape[:2]}
	targets := b.fixed("targets", ids, pin{region: ir.RTargets, filled: true, locked: true})
	targets.bytes = b.rows * ids.DType.Size()
	targets.rowBytes = ids.DType.Size()
	scalars := b.fixed("scalars", tensor.Type{Shape: tensor.Shape{{N: 2 * plan.NumScalars}}}, pin{region: ir.RScalars, filled: true, locked: true})

	c := newCall("crossentropy", []string{"logits", "targets"}, []tensor.Type{typ, ids}, nil)
	if pitch > 0 {
		c.Consts = append(c.Consts, op.IntConst("Pitch", pitch))
	}
	if limit != 0 {
		c.Consts = append(c.Consts, op.FloatConst("Cap", limit))
	}
	launch := c.Def.ByName("Eval")
	if train {
		launch = c.Def.ByName("Loss")
	}
	var d *value
	operands := map[string]*value{"logits": logits, "targets": targets, "scalars": scalars, "partials": partials}
	if train {
		d = b.gradient(logits, typ)
		d.spread(pitch)
		operands[op.Grad("logits")] = d
		b.pending[logits] = append(b.pending[logits], d)
	}
	in := &inst{call: c, launch: launch, span: b.t.Span, inLoop: b.inLoop, guard: -1}
	if n := b.t.Graph.Outputs[0].Node; n != nil {
		in.span = n.Span
	}
	for _, name := range launch.Reads {
		in.reads = append(in.reads, operand{name: name, v: operands[name]})
	}
	for _, name := range launch.Writes {
		in.writes = append(in.writes, operand{name: name, v: operands[name]})
	}
	b.insts = append(b.insts, in)
}

// closeLoop sums up, inside the loop, the gradients of values that exist for all rows, and
// makes each sum such a value too: a chunk writes its rows of it.
func (b *builder) closeLoop() {
	for _, x := range b.order {
		if x.chunk {
			continue
		}
		d := b.total(x, b.t.Span)
		if d == nil || !d.chunk {
			continue
		}
		d.chunk, d.typ, d.bytes = false, x.typ, x.bytes
	}
}

// splitHead splits the head's graph at its last linear: what follows it, and it itself, runs
// over chunks of rows; what stands before runs over all rows at once.
func splitHead(g *ir.Graph, diags *diag.List) (pre, tail []*ir.Node) {
	in := map[*ir.Node]bool{}
	after := map[*ir.Value]bool{}
	for i, n := range slices.Backward(g.Nodes) {
		if !hasMatrix(n) {
			continue
		}
		in[n], after[n.Out] = true, true
		for _, m := range g.Nodes[i+1:] {
			if slices.ContainsFunc(m.Inputs, func(v *ir.Value) bool { return after[v] }) {
				in[m], after[m.Out] = true, true
				if !chunkable(m) {
					diags.Errorf("MT0334", m.Span, "`%s` after the last linear mixes rows, so the logits would have to exist for all rows at once", m.Call.Def.Name).
						Mark("only elementwise ops may stand here").
						Also(n.Span, "the last linear").
						Hint("move it before the last linear")
				}
			}
		}
		break
	}
	widen(g, in)
	for _, n := range g.Nodes {
		if in[n] {
			tail = append(tail, n)
		} else {
			pre = append(pre, n)
		}
	}
	return pre, tail
}

// widen also takes in ops that make something as wide as the logits for the chunked ops only
// (the other term of a sum of two linears), so that it need not exist for all rows.
func widen(g *ir.Graph, in map[*ir.Node]bool) {
	width := g.Outputs[0].Type.Shape.Last().N
	outside := map[*ir.Value]bool{}
	for _, n := range slices.Backward(g.Nodes) {
		if !in[n] && chunkable(n) && !outside[n.Out] && n.Out.Type.Shape.Last().N >= width && feeds(g, n, in) {
			in[n] = true
		}
		if !in[n] {
			for _, v := range n.Inputs {
				outside[v] = true
			}
		}
	}
}

func feeds(g *ir.Graph, n *ir.Node, in map[*ir.Node]bool) bool {
	return slices.ContainsFunc(g.Nodes, func(m *ir.Node) bool { return in[m] && slices.Contains(m.Inputs, n.Out) })
}

func hasMatrix(n *ir.Node) bool {
	return slices.ContainsFunc(n.Call.Weights, func(w op.Weight) bool { return w.Role == op.Matrix })
}

// chunkable tells whether a node may run over some of the rows: each row of its result
// depends on the same row of its inputs only, and not on where the row stands.
func chunkable(n *ir.Node) bool {
	return n.Call.Def.RowWise && !slices.ContainsFunc(n.Call.Consts, func(c op.Const) bool {
		return c.Kind == op.CBatch || c.Kind == op.CSeq || c.Kind == op.CPos
	})
}
