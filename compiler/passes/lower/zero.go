package lower

import (
	"sort"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// zeroUnwritten appends fills for the parts of the gradient slabs that no launch writes:
// gaps for alignment and weights whose op was dropped. A slot holds what it held for another
// slab before, so they are cleared with the first contribution.
func (b *builder) zeroUnwritten() {
	for s, layout := range b.t.Slabs {
		if layout.Frozen {
			continue
		}
		type span struct{ lo, hi int64 }
		var written []span
		for k, i := range layout.Weights {
			w := b.t.Graph.Weights[i]
			if b.dwSeen[w] {
				written = append(written, span{layout.Offs[k], layout.Offs[k] + w.Shape.Elems()})
			}
		}
		sort.Slice(written, func(i, j int) bool { return written[i].lo < written[j].lo })
		written = append(written, span{layout.Elems, layout.Elems})
		var at int64
		for _, w := range written {
			if w.lo > at {
				b.zero(s, at, w.lo-at)
			}
			at = w.hi
		}
	}
}

// zero appends a fill of elements of a gradient slab.
func (b *builder) zero(slab int, off, n int64) {
	typ := tensor.Type{DType: tensor.F32, Shape: tensor.Shape{{N: n}}}
	v := b.fixed("gap", typ, pin{region: ir.RGrad, index: slab, off: off * typ.DType.Size(), filled: true, locked: true})
	v.mutable = true
	in := b.insert(fillCall(n), b.t.Span, nil, []*value{v})
	in.guard = slab
}

func fillCall(n int64) *op.Call {
	return newCall("fill", nil, nil, map[string]op.Value{"n": *op.IntValue(n), "value": *op.FloatValue(0)})
}
