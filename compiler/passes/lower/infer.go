package lower

import (
	"slices"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/plan"
)

// Infer makes each template's function for generation: the next rows of one sequence, from
// position Pos on, at most Prefill of them. Ops that look back read a cache of `seq`
// positions (Cached, State) instead of earlier rows. The head gives the logits of the last
// row only.
func Infer(l *Lowering) {
	for _, t := range l.tmpls {
		seq := l.Program.Model.Seq
		b := newBuilder(l, t, sizeFull(t.Graph, 1, l.Program.Prefill), sizeFull(t.Graph, 1, seq))
		b.infer = true
		b.addState()
		all, last := t.Graph.Nodes, []*ir.Node(nil)
		if t.kind == ir.HeadUnit {
			all, last = splitLastRow(t.Graph)
		}
		b.cached(all)
		var loop ir.Loop
		if t.kind == ir.HeadUnit {
			loop = ir.Loop{Rows: 1, Chunk: 1, Last: true}
			b.inLoop, b.sizes, b.emit = true, sizeFull(t.Graph, 1, 1), sizeFull(t.Graph, 1, 1)
			b.cached(last)
		}
		b.insts, _ = b.epilogues(b.insts, nil)
		b.insts, _ = b.rotations(b.insts, nil)
		b.insts = b.residuals(b.insts, nil)
		pins := map[*value]pin{}
		l.placeOutputs(b, pins)
		b.sizes = sizeFull(t.Graph, 1, l.Program.Prefill)
		f := b.function(plan.Infer, b.insts, pins)
		f.loop = loop
		t.funcs = append(t.funcs, f)
		for _, v := range t.Graph.Outputs {
			t.Gen = append(t.Gen, b.sizes.types[v])
		}
	}
}

// cached appends forward launches, the cached ones where an op has them.
func (b *builder) cached(nodes []*ir.Node) {
	for _, n := range nodes {
		launch := &n.Call.Def.Forward
		if n.Call.Def.Cached != nil {
			launch = n.Call.Def.Cached
		}
		b.define(n)
		b.launch(n, launch)
	}
}

// addState gives every op's caches a place in the State region.
func (b *builder) addState() {
	b.t.StateBytes = 0
	for _, n := range b.t.Graph.Nodes {
		for _, s := range b.emit.calls[n].State {
			v := b.fixed(resultName(n)+"."+s.Name, s.Type, pin{region: ir.RState, off: b.t.StateBytes, filled: true, locked: true})
			v.mutable = true
			b.extra[extraKey{n, s.Name}] = v
			b.t.StateBytes += align(v.bytes)
		}
	}
}

// splitLastRow splits the head's graph: the ops at its end that are row-wise run for the
// last row only.
func splitLastRow(g *ir.Graph) (all, last []*ir.Node) {
	mixed := map[*ir.Value]bool{} // read by an op that needs all rows
	in := map[*ir.Node]bool{}
	for _, n := range slices.Backward(g.Nodes) {
		if chunkable(n) && !mixed[n.Out] {
			in[n] = true
			continue
		}
		for _, v := range n.Inputs {
			mixed[v] = true
		}
	}
	for _, n := range g.Nodes {
		if in[n] {
			last = append(last, n)
		} else {
			all = append(all, n)
		}
	}
	return all, last
}
