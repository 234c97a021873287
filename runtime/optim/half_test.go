package optim

import (
	"math"
	"slices"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/plan"
)

// TestToHalf: the nearest bf16, ties to even, beyond it infinity, NaN as NaN.
func TestToHalf(t *testing.T) {
	for _, c := range []struct{ in, want uint32 }{
		{0x3f800000, 0x3f80}, {0x3f807fff, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82},
		{0xbf808000, 0xbf80}, {0xbf818000, 0xbf82}, {0x7f7fffff, 0x7f80}, {0xff7fffff, 0xff80}, {0x7f800000, 0x7f80},
		{0x00000001, 0x0000}, {0x80000000, 0x8000}, {0x7f800001, 0x7fc0}, {0xff812345, 0xffc1}, {0x7fffffff, 0x7fff},
	} {
		if got := toHalf(math.Float32frombits(c.in)); uint32(got) != c.want {
			t.Errorf("%08x: %04x, want %04x", c.in, got, c.want)
		}
	}
}

// rounded is a gradient after its way through bf16.
func rounded(g []float32) []float32 {
	out := make([]float32, len(g))
	for i, x := range g {
		out[i] = math.Float32frombits(uint32(toHalf(x)) << 16)
	}
	return out
}

// TestHalfGradientIsTheRoundedOne: rounding, norm and update of a gradient in bf16 give the
// bits that the f32 ones give of the rounded gradient, on either device, at every size.
func TestHalfGradientIsTheRoundedOne(t *testing.T) {
	check := func(t *testing.T, m *optest.Machine, host bool) {
		for _, n := range []int{2, 1000, 4096, 1 << 15, 3<<15 + 78} {
			g := random(uint64(n), n)
			g[n/2] = 1e30
			half := m.I32(make([]int32, n/2)...)
			Round(m.Queue, RoundArgs{Grad: m.F32(g...), Half: half, Elems: int64(n)})
			norm := m.F64(0, 0)
			SquaredNorm(m.Queue, SquaredNormArgs{Grad: half, Norm: norm, Elems: int64(n), Half: true})
			wide := m.F32(rounded(g)...)
			SquaredNorm(m.Queue, SquaredNormArgs{Grad: wide, Norm: norm.At(8), Elems: int64(n)})
			m.Sync()
			if got := readHalves(m, half, int64(n)); !slices.EqualFunc(got, g, func(h uint16, x float32) bool { return h == toHalf(x) }) {
				t.Fatalf("%d elements: other halves", n)
			}
			if got := m.ReadF64(norm, 2); got[0] != got[1] || got[0] == 0 {
				t.Errorf("%d elements: the norm is %v, of the rounded gradient %v", n, got[0], got[1])
			}
			if host {
				halfUpdates(t, m, n, half, wide)
			}
		}
	}
	t.Run("cpu", func(t *testing.T) { check(t, optest.NewMachine(t, 2), true) })
	optest.OnGPU(t, func(t *testing.T, f32 bool) { check(t, optest.GPU(t, f32), false) })
}

// halfUpdates compares updates by a gradient in bf16 with those by its f32.
func halfUpdates(t *testing.T, m *optest.Machine, n int, half, wide device.Ptr) {
	t.Helper()
	w, mo, v := random(1, n), random(3, n), squares(4, n)
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

// TestHalfNormTellsWhatIsNotFinite: what bf16 cannot hold sets the skip flag.
func TestHalfNormTellsWhatIsNotFinite(t *testing.T) {
	for _, bad := range []float32{1, float32(math.NaN()), float32(math.Inf(-1)), math.MaxFloat32} {
		both(t, func(m *optest.Machine) []float32 {
			g, s := random(1, 5000), m.F64(stepScalars()...)
			g[4321] = bad
			half := m.I32(make([]int32, 2500)...)
			Round(m.Queue, RoundArgs{Grad: m.F32(g...), Half: half, Elems: 5000})
			SquaredNorm(m.Queue, SquaredNormArgs{Grad: half, Norm: m.F64(0), Scalars: s, Elems: 5000, Half: true})
			m.Sync()
			skip := m.ReadF64(s, plan.NumScalars)[plan.ScalarSkip]
			if want := bad != 1; (skip != 0) != want {
				t.Errorf("%v: skip flag %v", bad, skip)
			}
			return []float32{float32(skip) + 1}
		}, 0)
	}
}
