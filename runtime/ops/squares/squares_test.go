package squares

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/plan"
)

// machines runs a test on the CPU at several numbers of threads and on a GPU in both precisions, and
// demands that what it returns has the same bits everywhere.
func machines(t *testing.T, run func(m *optest.Machine) []float64) {
	t.Helper()
	want := run(optest.NewMachine(t, 1))
	same := func(t *testing.T, got []float64) {
		t.Helper()
		if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b }) {
			t.Errorf("%v, one thread of a CPU %v", got, want)
		}
	}
	for _, threads := range []int{2, 7} {
		same(t, run(optest.NewMachine(t, threads)))
	}
	optest.OnGPU(t, func(t *testing.T, f32 bool) { same(t, run(optest.GPU(t, f32))) })
}

func random(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 0))
	s := make([]float32, n)
	for i := range s {
		s[i] = float32(r.NormFloat64())
	}
	return s
}

// room is memory for the parts of n elements.
func room(m *optest.Machine, n int) device.Ptr { return m.Bytes(8 * plan.SquaresBlocks(int64(n))) }

// TestNorm: against float64, with the same bits at any number of threads and on a GPU.
func TestNorm(t *testing.T) {
	for _, n := range []int{1, 3, 1000, Block, Block + 1, 5*Block + 19} {
		g := random(5, n)
		var want float64
		for _, x := range g {
			want += float64(x) * float64(x)
		}
		machines(t, func(m *optest.Machine) []float64 {
			norm := m.F64(-1)
			Norm(m.Queue, NormArgs{Grad: m.F32(g...), Parts: room(m, n), Norm: norm, Elems: int64(n)})
			m.Sync()
			got := m.ReadF64(norm, 1)
			if math.Abs(got[0]-want) > 1e-12*want {
				t.Errorf("%d elements: %v, want %v", n, got[0], want)
			}
			return got
		})
	}
}

// TestPartsInAnyOrder: the blocks may be made by several launches, in any order, of one range or two.
func TestPartsInAnyOrder(t *testing.T) {
	const n = 6*Block + 100
	machines(t, func(m *optest.Machine) []float64 {
		g := m.F32(random(7, n)...)
		apart, whole := room(m, n), room(m, n)
		Parts(m.Queue, PartsArgs{Grad: g, Parts: apart, Elems: n, First: 4, Blocks: 1})
		Parts(m.Queue, PartsArgs{Grad: g, Parts: apart, Elems: n, First: 1, Blocks: 3, First2: 6, Blocks2: 1})
		Parts(m.Queue, PartsArgs{Grad: g, Parts: apart, Elems: n, Blocks: 1, First2: 5, Blocks2: 1})
		Parts(m.Queue, PartsArgs{Grad: g, Parts: whole, Elems: n, Blocks: 7})
		m.Sync()
		got, want := m.ReadF64(apart, 7), m.ReadF64(whole, 7)
		if !slices.Equal(got, want) || got[6] == 0 {
			t.Errorf("by ranges %v, at once %v", got, want)
		}
		return got
	})
}

// TestNotFinite: a norm that is not finite sets the skip flag where it is asked to, and a later finite
// one leaves it.
func TestNotFinite(t *testing.T) {
	for _, bad := range []float32{1, float32(math.NaN()), float32(math.Inf(-1))} {
		machines(t, func(m *optest.Machine) []float64 {
			g, s := random(1, 5000), m.F64(make([]float64, plan.NumScalars)...)
			g[4321] = bad
			Norm(m.Queue, NormArgs{Grad: m.F32(g...), Parts: room(m, 5000), Norm: m.F64(0), Scalars: s, Elems: 5000})
			Norm(m.Queue, NormArgs{Grad: m.F32(1), Parts: room(m, 1), Norm: m.F64(0), Scalars: s, Elems: 1})
			m.Sync()
			skip := m.ReadF64(s, plan.NumScalars)[plan.ScalarSkip]
			if (skip != 0) != (bad != 1) {
				t.Errorf("%v: skip flag %v", bad, skip)
			}
			return []float64{skip}
		})
	}
}

// TestToHalf: the nearest bf16, ties to even, beyond it infinity, NaN as NaN.
func TestToHalf(t *testing.T) {
	for _, c := range []struct{ in, want uint32 }{
		{0x3f800000, 0x3f80}, {0x3f807fff, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82},
		{0xbf808000, 0xbf80}, {0xbf818000, 0xbf82}, {0x7f7fffff, 0x7f80}, {0xff7fffff, 0xff80}, {0x7f800000, 0x7f80},
		{0x00000001, 0x0000}, {0x80000000, 0x8000}, {0x7f800001, 0x7fc0}, {0xff812345, 0xffc1}, {0x7fffffff, 0x7fff},
	} {
		if got := ToHalf(math.Float32frombits(c.in)); uint32(got) != c.want {
			t.Errorf("%08x: %04x, want %04x", c.in, got, c.want)
		}
	}
}

// TestRound: every element is rounded, and the sums are those of the rounded gradient; what bf16 cannot
// hold shows in them.
func TestRound(t *testing.T) {
	for _, n := range []int{2, 6, 1000, Block, 3*Block + 78} {
		for _, huge := range []float32{1, math.MaxFloat32} {
			g := random(uint64(n), n)
			g[n/2] = huge
			wide := make([]float32, n)
			for i, x := range g {
				wide[i] = math.Float32frombits(uint32(ToHalf(x)) << 16)
			}
			blocks := plan.SquaresBlocks(int64(n))
			machines(t, func(m *optest.Machine) []float64 {
				half := m.Bytes(2 * int64(n))
				parts, want := room(m, n), room(m, n)
				Round(m.Queue, RoundArgs{Grad: m.F32(g...), Half: half, Parts: parts, Elems: int64(n)})
				Parts(m.Queue, PartsArgs{Grad: m.F32(wide...), Parts: want, Elems: n, Blocks: int(blocks)})
				m.Sync()
				b := m.ReadBytes(half, 2*int64(n))
				for i, x := range g {
					if got := uint16(b[2*i]) | uint16(b[2*i+1])<<8; got != ToHalf(x) {
						t.Fatalf("element %d of %d: %04x of %v, want %04x", i, n, got, x, ToHalf(x))
					}
				}
				got := m.ReadF64(parts, blocks)
				if !slices.Equal(got, m.ReadF64(want, blocks)) {
					t.Errorf("%d elements: the sums are %v, of the rounded gradient %v", n, got, m.ReadF64(want, blocks))
				}
				return got
			})
		}
	}
}
