package lower

import (
	"cmp"
	"slices"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/ops/squares"
	"github.com/megatrain/mtc/runtime/tensor"
)

// flushElems is how much of a gradient is complete before the sums of its squares are made: enough that
// launches are few, and so little that some of it is still in the cache in which a product left it. A layer of
// GPT-2 is less; with half as much its step took 0.5 % longer.
const flushElems = 8 << 20

// squares puts behind the launches that complete gradients those that make the sums of their squares,
// for the norm: block by block of each slab, as soon as no launch adds to a block any more. They run when
// the function is called for the last time in a step (ir.IfWhole). Parts that no launch writes
// are zeroed first of all.
func (b *builder) squares(insts []*inst) []*inst {
	fills := func(in *inst) bool { return in.guard >= 0 }
	list := slices.DeleteFunc(slices.Clone(insts), func(in *inst) bool { return !fills(in) })
	list = append(list, slices.DeleteFunc(slices.Clone(insts), fills)...)
	after := make([][]*inst, len(list)) // what follows each launch
	for s := range b.t.Slabs {
		if !b.t.Slabs[s].Frozen {
			b.slabSquares(s, list, after)
		}
	}
	var out []*inst
	for i, in := range list {
		out = append(append(out, in), after[i]...)
	}
	return out
}

// slabSquares adds the sums of one slab.
func (b *builder) slabSquares(slab int, list []*inst, after [][]*inst) {
	last := lastWrites(list)
	layout := b.t.Slabs[slab]
	done := make([]int, (layout.Elems+squares.Block-1)/squares.Block) // the launch behind which a block is complete
	for k, i := range layout.Weights {
		w := b.t.Graph.Weights[i]
		at, n, by := layout.Offs[k], w.Shape.Elems(), last[b.dw[w]]
		for x := at / squares.Block; x <= (at+n-1)/squares.Block; x++ {
			done[x] = max(done[x], by)
		}
	}
	for i, ranges := range readyBlocks(done, len(list), flushElems/squares.Block) {
		for two := range slices.Chunk(ranges, 2) {
			after[i] = append(after[i], b.partsOf(slab, layout.Elems, two))
		}
	}
}

// readyBlocks are, for each of n launches, the ranges of blocks whose sums are made behind it: those that
// are complete by then and were not when the ones before were made, if they are enough or the last.
func readyBlocks(done []int, n int, enough int64) [][][2]int64 {
	complete := make([][][2]int64, n) // by the launch behind which they are
	for x, i := range done {
		if r := complete[i]; len(r) > 0 && r[len(r)-1][1] == int64(x) {
			r[len(r)-1][1]++
			continue
		}
		complete[i] = append(complete[i], [2]int64{int64(x), int64(x) + 1})
	}
	ready := make([][][2]int64, n)
	var pending [][2]int64
	var blocks, made int64
	for i, ranges := range complete {
		for _, r := range ranges {
			blocks += r[1] - r[0]
		}
		pending = append(pending, ranges...)
		if len(ranges) > 0 && (blocks >= enough || made+blocks == int64(len(done))) {
			ready[i] = joined(pending)
			made += blocks
			pending, blocks = nil, 0
		}
	}
	return ready
}

// joined are ranges in order, those that touch made one.
func joined(ranges [][2]int64) [][2]int64 {
	slices.SortFunc(ranges, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	var out [][2]int64
	for _, r := range ranges {
		if n := len(out); n > 0 && out[n-1][1] == r[0] {
			out[n-1][1] = r[1]
			continue
		}
		out = append(out, r)
	}
	return out
}

// lastWrites says for each value which launch writes it last; in the loop over the head's chunks that
// is the end of the loop.
func lastWrites(list []*inst) map[*value]int {
	loopEnd := -1
	for i, in := range list {
		if in.inLoop {
			loopEnd = i
		}
	}
	last := map[*value]int{}
	for i, in := range list {
		for _, o := range in.writes {
			if last[o.v] = i; in.inLoop {
				last[o.v] = loopEnd
			}
		}
	}
	return last
}

// partsOf is a launch over ranges of a slab's blocks.
func (b *builder) partsOf(slab int, elems int64, ranges [][2]int64) *inst {
	fixed := func(name string, r ir.Region, n int64) *value {
		v := b.fixed(name, tensor.Type{DType: tensor.F32, Shape: tensor.Shape{{N: n}}}, pin{region: r, index: slab, filled: true, locked: true})
		v.mutable = true
		return v
	}
	if b.slabGrad[slab] == nil {
		if b.slabGrad == nil {
			b.slabGrad, b.slabParts = map[int]*value{}, map[int]*value{}
		}
		b.slabGrad[slab] = fixed("grad", ir.RSlabGrad, elems)
		b.slabParts[slab] = fixed("squares", ir.RSquares, 2*((elems+squares.Block-1)/squares.Block))
	}
	return &inst{
		call: squares.Call(elems, ranges...), launch: &squares.Def.Forward, span: b.t.Span, guard: -1, whole: slab + 1,
		reads: []operand{{name: "grad", v: b.slabGrad[slab]}}, writes: []operand{{name: "parts", v: b.slabParts[slab]}},
	}
}
