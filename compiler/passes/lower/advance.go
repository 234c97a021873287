package lower

import "github.com/megatrain/mtc/runtime/plan"

// advance makes the function that moves the state of a template's router after a step.
func (l *Lowering) advance(b *builder) {
	b.insts = nil
	for _, n := range b.t.Graph.Nodes {
		if n.Call.Def.Advance != nil {
			b.launch(n, n.Call.Def.Advance)
		}
	}
	if len(b.insts) > 0 {
		b.t.funcs = append(b.t.funcs, b.function(plan.Advance, b.insts, nil))
	}
}
