package bench

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/squares"
	"github.com/megatrain/mtc/runtime/optim"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/tensor"
)

// slabs are the passes over whole slabs, on the compute lane.
func (b *bencher) slabs() []kase {
	elems := []int64{1 << 16, 1 << 18, 7 << 20, 32 << 20}
	if b.o.Target == "cuda" {
		elems = []int64{1 << 20, 7 << 20, 200 << 20}
	}
	if b.o.Quick {
		elems = elems[:1]
	}
	var out []kase
	for _, n := range elems {
		out = append(out,
			kase{"norm", op.Cost{FLOPs: 2 * n, Bytes: 4 * n}, op.Shape{}, 0, func(m *memory) func(device.Queue) {
				a := squares.NormArgs{Grad: m.oldF32(int(n)), Parts: m.bytes(8 * plan.SquaresBlocks(n)), Norm: m.f64(0), Elems: n}
				return func(q device.Queue) { squares.Norm(q, a) }
			}},
			kase{"accumulate", op.Cost{FLOPs: n, Bytes: 12 * n}, op.Shape{}, 0, func(m *memory) func(device.Queue) {
				a := optim.AccumulateArgs{Dst: m.oldF32(int(n)), Src: m.oldF32(int(n)), Elems: n}
				return func(q device.Queue) { optim.Accumulate(q, a) }
			}},
			kase{"update", op.Cost{FLOPs: 14 * n, Bytes: 28 * n}, op.Shape{}, 0, func(m *memory) func(device.Queue) {
				return b.update(m, n)
			}})
	}
	return out
}

// update is an optimizer step on a slab of n parameters that lies in m.
func (b *bencher) update(m *memory, n int64) func(q device.Queue) {
	scalars := make([]float64, plan.NumScalars)
	scalars[plan.ScalarStep], scalars[plan.ScalarLR], scalars[plan.ScalarMaxNorm], scalars[plan.ScalarClip] = 10, 1e-6, 1, 1
	if b.o.DType == tensor.F32 {
		a := optim.AdamWArgs{
			Weight: m.oldF32(int(n)), Grad: m.oldF32(int(n)), M: m.oldF32(int(n)), V: m.oldF32(int(n)), Scalars: m.f64(scalars...),
			Elems: n, Decay: n, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1,
		}
		return func(q device.Queue) { optim.AdamW(q, a) }
	}
	a := optim.AdamWSplitArgs{
		Hi: m.bytes(2 * n), Lo: m.bytes(2 * n), Grad: m.f32(int(n)), M: m.f32(int(n)), V: m.f32(int(n)), Scalars: m.f64(scalars...),
		Elems: n, Decay: n, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1,
	}
	return func(q device.Queue) { optim.AdamWSplit(q, a) }
}
