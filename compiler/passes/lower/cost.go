package lower

import "github.com/megatrain/mtc/runtime/op"

// cost adds up what the launches of a function do.
func (f *fn) cost() (flops, moved int64) {
	for _, in := range f.insts {
		if in.launch.Cost == nil || in.whole > 0 { // those of the last micro-batch are counted with their task
			continue
		}
		add := func(times int64, s op.Sizes) {
			c := in.launch.Cost(in.call, s)
			flops += times * c.FLOPs
			moved += times * c.Bytes
		}
		switch {
		case !in.inLoop:
			add(1, f.sizes)
		default:
			add(f.loop.Rows/f.loop.Chunk, op.Sizes{Batch: 1, Seq: f.loop.Chunk})
			if rest := f.loop.Rows % f.loop.Chunk; rest > 0 {
				add(1, op.Sizes{Batch: 1, Seq: rest})
			}
		}
	}
	return flops, moved
}
