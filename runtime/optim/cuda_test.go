package optim

import (
	"math"
	"slices"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/vec"
)

// both runs a case on the CPU and on a GPU.
func both(t *testing.T, run func(m *optest.Machine) []float32, tol float64) {
	t.Helper()
	want := run(optest.NewMachine(t, 2))
	optest.OnGPU(t, func(t *testing.T, f32 bool) {
		got := run(optest.GPU(t, f32))
		wide := make([]float64, len(want))
		for i, x := range want {
			wide[i] = float64(x)
		}
		optest.Compare(t, "result", got, wide, tol)
		if !slices.Equal(run(optest.GPU(t, f32)), got) {
			t.Error("other bits the second time")
		}
	})
}

func stepScalars() []float64 {
	s := make([]float64, plan.NumScalars)
	s[plan.ScalarStep], s[plan.ScalarLR], s[plan.ScalarMaxNorm], s[plan.ScalarClip] = 7, 1e-2, 1, 0.3
	return s
}

func squared(seed uint64, n int) []float32 {
	v := random(seed, n)
	for i := range v {
		v[i] *= v[i]
	}
	return v
}

func TestCUDAReduce(t *testing.T) {
	for _, losses := range [][]float64{{4, 2, 10, 3}, {4, 2, math.NaN(), 3}, {0, 0, 0, 0}} {
		for _, limit := range []float64{0, 1, 100} {
			both(t, func(m *optest.Machine) []float32 {
				s := stepScalars()
				s[plan.ScalarMaxNorm] = limit
				p := m.F64(s...)
				Reduce(m.Queue, ReduceArgs{Scalars: p, Norms: m.F64(4, 5, 7), NumNorms: 3, Partials: m.F64(losses...), NumPartials: 2})
				m.Sync()
				var out []float32
				for _, x := range m.ReadF64(p, plan.NumScalars) {
					if math.IsNaN(x) {
						x = -1 // which is like itself
					}
					out = append(out, float32(x))
				}
				return out
			}, 1e-7)
		}
	}
}

func TestCUDAAccumulate(t *testing.T) {
	for _, first := range []bool{true, false} {
		both(t, func(m *optest.Machine) []float32 {
			dst := m.F32(random(1, 9001)...)
			Accumulate(m.Queue, AccumulateArgs{Dst: dst, Src: m.F32(random(2, 9001)...), Elems: 9001, First: first})
			m.Sync()
			return m.ReadF32(dst, 9001)
		}, 0)
	}
}

func TestCUDAAdamW(t *testing.T) {
	for _, skip := range []float64{0, 1} {
		for _, n := range []int{64, 9001} {
			both(t, func(m *optest.Machine) []float32 {
				s := stepScalars()
				s[plan.ScalarSkip] = skip
				w, mo, v := m.F32(random(1, n)...), m.F32(random(3, n)...), m.F32(squared(4, n)...)
				AdamW(m.Queue, AdamWArgs{Weight: w, Grad: m.F32(random(2, n)...), M: mo, V: v, Scalars: m.F64(s...),
					Elems: int64(n), Decay: int64(n) * 2 / 3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1})
				m.Sync()
				return slices.Concat(m.ReadF32(w, int64(n)), m.ReadF32(mo, int64(n)), m.ReadF32(v, int64(n)))
			}, 0) // to the bit: streamed runs update on the host, resident ones on the GPU
		}
	}
}

// TestSplitIsExact: on either device the split master goes where a float32 one goes, to the bit,
// and its upper half is the nearest bf16.
func TestSplitIsExact(t *testing.T) {
	const n, decay = 9002, 5001
	check := func(t *testing.T, m *optest.Machine) {
		start, grads, mo, v := random(1, n), random(2, n), random(3, n), squared(4, n)
		start[7], grads[7], mo[7], v[7] = 0, 0, 0, 0
		hi, lo := make([]uint16, n), make([]uint16, n)
		vec.SplitMasters(hi, lo, start)
		args := AdamWArgs{Scalars: m.F64(stepScalars()...), Grad: m.F32(grads...), Elems: n, Decay: decay,
			Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1}
		split := AdamWSplitArgs{Hi: m.I32(pairs(hi)...), Lo: m.I32(pairs(lo)...), Grad: args.Grad, M: m.F32(mo...), V: m.F32(v...), Scalars: args.Scalars,
			Elems: n, Decay: decay, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1}
		args.Weight, args.M, args.V = m.F32(start...), m.F32(mo...), m.F32(v...)
		for range 3 {
			AdamW(m.Queue, args)
			AdamWSplit(m.Queue, split)
		}
		m.Sync()
		if !slices.Equal(m.ReadF32(args.M, n), m.ReadF32(split.M, n)) || !slices.Equal(m.ReadF32(args.V, n), m.ReadF32(split.V, n)) {
			t.Error("other moments")
		}
		h, l := readHalves(m, split.Hi, n), readHalves(m, split.Lo, n)
		joined, near := make([]float32, n), make([]float32, n)
		vec.JoinMasters(joined, h, l)
		vec.JoinMasters(near, h, make([]uint16, n))
		moved := false
		for i, want := range m.ReadF32(args.Weight, n) {
			if math.Float32bits(joined[i]) != math.Float32bits(want) {
				t.Fatalf("master %d is %v, want %v", i, joined[i], want)
			}
			if math.Abs(float64(near[i]-want)) > math.Abs(float64(want))/256 {
				t.Fatalf("the upper half of %v is %v", want, near[i])
			}
			moved = moved || want != start[i]
		}
		if !moved {
			t.Error("no weight moved")
		}
	}
	t.Run("cpu", func(t *testing.T) { check(t, optest.NewMachine(t, 2)) })
	optest.OnGPU(t, func(t *testing.T, f32 bool) { check(t, optest.GPU(t, f32)) })
}

// pairs puts 16-bit halves together, as I32 places them.
func pairs(h []uint16) []int32 {
	v := make([]int32, len(h)/2)
	for i := range v {
		v[i] = int32(uint32(h[2*i]) | uint32(h[2*i+1])<<16)
	}
	return v
}

func readHalves(m *optest.Machine, p device.Ptr, n int64) []uint16 {
	b, v := m.ReadBytes(p, 2*n), make([]uint16, n)
	for i := range v {
		v[i] = uint16(b[2*i]) | uint16(b[2*i+1])<<8
	}
	return v
}
