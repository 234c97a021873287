package optim

import (
	"math"
	"slices"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/ops/squares"
	"github.com/megatrain/mtc/runtime/plan"
)

// rounded is a gradient after its way through bf16.
func rounded(g []float32) []float32 {
	out := make([]float32, len(g))
	for i, x := range g {
		out[i] = math.Float32frombits(uint32(squares.ToHalf(x)) << 16)
	}
	return out
}

// TestHalfGradientIsTheRoundedOne: an update by a gradient in bf16 gives the bits that one by the
// rounded gradient gives.
func TestHalfGradientIsTheRoundedOne(t *testing.T) {
	m := optest.NewMachine(t, 2)
	for _, n := range []int{2, 1000, 4096, 1 << 15, 3<<15 + 78} {
		g := random(uint64(n), n)
		half := m.I32(make([]int32, n/2)...)
		squares.Round(m.Queue, squares.RoundArgs{Grad: m.F32(g...), Half: half, Parts: m.F64(make([]float64, plan.SquaresBlocks(int64(n)))...), Elems: int64(n)})
		halfUpdates(t, m, n, half, m.F32(rounded(g)...))
	}
}

// halfUpdates compares updates by a gradient in bf16 with those by its f32.
func halfUpdates(t *testing.T, m *optest.Machine, n int, half, wide device.Ptr) {
	t.Helper()
	w, mo, v := random(1, n), random(3, n), squared(4, n)
	var out [2][]float32
	var split [2][]uint16
	for k, grad := range []device.Ptr{half, wide} {
		a := AdamWArgs{Weight: m.F32(w...), Grad: grad, M: m.F32(mo...), V: m.F32(v...), Scalars: m.F64(stepScalars()...),
			Elems: int64(n), Decay: int64(n) * 2 / 3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, Half: k == 0}
		AdamW(m.Queue, a)
		hi, lo := make([]int32, n/2), make([]int32, n/2)
		for i := range hi {
			hi[i], lo[i] = 0x3f803f80, 0x00010002
		}
		s := AdamWSplitArgs{Hi: m.I32(hi...), Lo: m.I32(lo...), Grad: grad, M: m.F32(mo...), V: m.F32(v...), Scalars: a.Scalars,
			Elems: a.Elems, Decay: a.Decay, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, Half: k == 0}
		AdamWSplit(m.Queue, s)
		m.Sync()
		out[k] = slices.Concat(m.ReadF32(a.Weight, a.Elems), m.ReadF32(a.M, a.Elems), m.ReadF32(a.V, a.Elems), m.ReadF32(s.M, a.Elems))
		split[k] = slices.Concat(readHalves(m, s.Hi, a.Elems), readHalves(m, s.Lo, a.Elems))
	}
	if !slices.Equal(out[0], out[1]) || !slices.Equal(split[0], split[1]) {
		t.Errorf("%d elements: the update by bf16 is another", n)
	}
	if slices.Equal(out[0][:n], w) {
		t.Error("no weight moved")
	}
}
