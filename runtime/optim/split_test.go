package optim

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/vec"
)

// putHalves is the 16-bit half of every value.
func putHalves(b *bench, values []float32) (hi, lo device.Ptr) {
	n := len(values)
	hi, lo = put(b, make([]float32, n/2)), put(b, make([]float32, n/2))
	vec.SplitMasters(halfView(b, hi, n), halfView(b, lo, n), values)
	return hi, lo
}

func halfView(b *bench, p device.Ptr, n int) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(b.View(p, int64(2*n))))), n)
}

// TestSplitMasterEqualsF32: twenty clipped steps with the same gradients leave the same bits in
// master, m and v, on any number of threads and wherever decay ends; a skipped step leaves all
// as it was.
func TestSplitMasterEqualsF32(t *testing.T) {
	const n = 2*adamwGrain + 78
	for _, c := range []struct {
		threads int
		decay   int64
	}{{1, n}, {2, 0}, {7, adamwGrain + 9}, {3, 5}} {
		t.Run(fmt.Sprintf("%d threads, %d decayed", c.threads, c.decay), func(t *testing.T) {
			b := newBench(t, c.threads)
			start := random(1, n)
			s := put(b, make([]float64, plan.NumScalars))
			grad := put(b, make([]float32, n))
			a := AdamWArgs{Weight: put(b, start), Grad: grad, M: put(b, make([]float32, n)), V: put(b, make([]float32, n)),
				Scalars: s, Elems: n, Decay: c.decay, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1}
			h := AdamWSplitArgs{Grad: grad, M: put(b, make([]float32, n)), V: put(b, make([]float32, n)),
				Scalars: s, Elems: n, Decay: c.decay, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1}
			h.Hi, h.Lo = putHalves(b, start)
			scalars := view[float64](b, s, plan.NumScalars)
			for step := range 20 {
				copy(view[float32](b, grad, n), random(uint64(10+step), n))
				scalars[plan.ScalarStep], scalars[plan.ScalarLR] = float64(step+1), 1e-3
				scalars[plan.ScalarMaxNorm], scalars[plan.ScalarClip] = 1, 0.37
				scalars[plan.ScalarSkip] = float64(step % 5 / 4)
				AdamW(b, a)
				AdamWSplit(b, h)
				b.sync()
			}
			master := make([]float32, n)
			vec.JoinMasters(master, halfView(b, h.Hi, n), halfView(b, h.Lo, n))
			moved := 0
			for i, want := range view[float32](b, a.Weight, n) {
				if master[i] != want || view[float32](b, h.M, n)[i] != view[float32](b, a.M, n)[i] || view[float32](b, h.V, n)[i] != view[float32](b, a.V, n)[i] {
					t.Fatalf("element %d is %v, want %v", i, master[i], want)
				}
				if want != start[i] {
					moved++
				}
			}
			if moved < n*9/10 {
				t.Errorf("%d of %d weights moved", moved, n)
			}
		})
	}
}

// BenchmarkAdamWSplit reports the bytes moved: 28 a parameter, like AdamW on f32.
func BenchmarkAdamWSplit(b *testing.B) {
	const n = 1 << 24
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			w := newBench(b, threads)
			s := make([]float64, plan.NumScalars)
			s[plan.ScalarStep], s[plan.ScalarLR], s[plan.ScalarMaxNorm], s[plan.ScalarClip] = 10, 1e-4, 1, 0.5
			a := AdamWSplitArgs{Grad: put(w, random(2, n)), M: put(w, random(3, n)), V: put(w, make([]float32, n)),
				Scalars: put(w, s), Elems: n, Decay: n, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1}
			a.Hi, a.Lo = putHalves(w, random(1, n))
			b.SetBytes(28 * n)
			for b.Loop() {
				AdamWSplit(w, a)
				w.sync()
			}
		})
	}
}
