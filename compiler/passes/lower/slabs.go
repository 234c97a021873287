package lower

import (
	"slices"
	"strings"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
)

// slabAlign is the alignment of parameters in a slab, in elements (64 bytes of f32).
const slabAlign = 16

// binding is how a unit's weights lie in slabs.
type binding struct {
	slabs   []int // indices of Program.Slabs
	layouts []ir.SlabLayout
}

// bindSlabs groups the parameters into slabs: those of one unit alone together, each tied
// one by itself, what is frozen apart from what learns. Slabs are in forward order of their first
// use, the frozen ones behind all others.
func bindSlabs(m *ir.Model, p *ir.Program, diags *diag.List) map[*ir.Unit]*binding {
	users := map[*ir.Param]int{}
	for _, u := range m.Units {
		for _, q := range u.Params {
			users[q]++
		}
	}
	names := map[string]bool{}
	for _, u := range m.Units {
		names[u.Path()] = true
	}
	spare := spareRows(m)
	tied := map[*ir.Param]int{}
	out := map[*ir.Unit]*binding{}
	for _, u := range m.Units {
		b := &binding{}
		out[u] = b
		for _, frozen := range []bool{true, false} {
			var own []int
			for i, q := range u.Params {
				if users[q] == 1 && q.Frozen == frozen {
					own = append(own, i)
				}
			}
			if len(own) == 0 {
				continue
			}
			s, l := layOut(u, own, spare)
			if s.Name = u.Path(); m.LoRA != nil && !frozen {
				s.Name += ".lora"
			}
			b.add(len(p.Slabs), l)
			p.Slabs = append(p.Slabs, s)
		}
		for i, q := range u.Params {
			if users[q] == 1 {
				continue
			}
			s, l := layOut(u, []int{i}, spare)
			k, ok := tied[q]
			if !ok {
				k = len(p.Slabs)
				tied[q] = k
				s.Name = slabName(q, names)
				p.Slabs = append(p.Slabs, s)
			}
			b.add(k, l)
		}
		if len(b.slabs) > plan.MaxSlabs {
			diags.Errorf("MT0412", u.Span, "`%s` uses %d tied weights, at most %d are possible in one unit", u.Path(), len(b.slabs)-1, plan.MaxSlabs-1)
		}
	}
	frozenLast(p, out)
	return out
}

// frozenLast puts the slabs that learn before the others.
func frozenLast(p *ir.Program, bindings map[*ir.Unit]*binding) {
	at := make([]int, len(p.Slabs))
	var list []*ir.Slab
	for _, frozen := range []bool{false, true} {
		for i, s := range p.Slabs {
			if s.Frozen == frozen {
				at[i] = len(list)
				list = append(list, s)
			}
		}
	}
	p.Slabs = list
	for _, b := range bindings {
		for k, s := range b.slabs {
			b.slabs[k] = at[s]
		}
	}
}

func (b *binding) add(slab int, l ir.SlabLayout) {
	b.slabs = append(b.slabs, slab)
	b.layouts = append(b.layouts, l)
}

// spareRows says how many elements lie behind a parameter so that its rows are a multiple of
// pitchElems: of the weight that makes the logits, whose products may then run over whole vectors
// (head.go). Like every gap they hold zeros, in the weight and in all that goes with it.
func spareRows(m *ir.Model) map[*ir.Param]int64 {
	spare := map[*ir.Param]int64{}
	for _, u := range m.Units {
		if u.Kind != ir.HeadUnit {
			continue
		}
		if w := logitsWeight(u.Graph); w != nil {
			rows, width := w.Shape[0].N, w.Shape[1].N
			spare[u.Params[slices.Index(u.Graph.Weights, w)]] = (pitchOf(rows) - rows) * width
		}
	}
	return spare
}

// layOut places parameters of a unit in one slab: matrices first, then vectors, so that the
// decayed part is one range.
func layOut(u *ir.Unit, which []int, spare map[*ir.Param]int64) (*ir.Slab, ir.SlabLayout) {
	frozen := u.Params[which[0]].Frozen
	s, l := &ir.Slab{Frozen: frozen}, ir.SlabLayout{Frozen: frozen}
	for _, decay := range []bool{true, false} {
		for _, i := range which {
			q := u.Params[i]
			if decays(q.Role) != decay {
				continue
			}
			at := s.Elems
			for _, part := range q.Each() {
				s.Params, s.Offs = append(s.Params, part), append(s.Offs, at)
				at += part.Elems()
			}
			l.Weights, l.Offs = append(l.Weights, i), append(l.Offs, s.Elems)
			s.Elems += (q.Elems() + spare[q] + slabAlign - 1) / slabAlign * slabAlign
		}
		if decay && !frozen {
			s.Decay = s.Elems
		}
	}
	l.Elems = s.Elems
	return s, l
}

// slabName is the path of a tied parameter without its last part, where that is unique.
func slabName(q *ir.Param, taken map[string]bool) string {
	name := q.Path
	if i := strings.LastIndexByte(name, '.'); i > 0 && !taken[name[:i]] {
		name = name[:i]
	}
	taken[name] = true
	return name
}

// decays tells whether weight decay applies: to matrices, not to norms and biases.
func decays(r op.Role) bool { return r == op.Matrix || r == op.Embedding }
