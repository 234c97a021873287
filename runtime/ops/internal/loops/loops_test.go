package loops

import (
	"math"
	"math/rand"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/vec"
)

// cutter is a CPU that cuts ranges in its own way and runs them in a random order.
type cutter struct {
	device.CPU
	rng *rand.Rand
}

func (c cutter) Parallel(n, grain int64, body func(lo, hi int64)) {
	var ranges [][2]int64
	for lo := int64(0); lo < n; {
		hi := min(n, lo+max(grain, 1)*(1+c.rng.Int63n(3)))
		ranges = append(ranges, [2]int64{lo, hi})
		lo = hi
	}
	for _, i := range c.rng.Perm(len(ranges)) {
		body(ranges[i][0], ranges[i][1])
	}
}

// TestSumRows: the sum is right at every number of rows and groups, has the same bits
// however it was cut, and adds to what it should.
func TestSumRows(t *testing.T) {
	const per = 5
	for _, rows := range []int64{1, 2, 63, 64, 65, 129, 4096, 4097, 10000} {
		for _, groups := range []int64{1, 2, 3, 8} {
			width := groups * per
			x := make([]float32, rows*width)
			rng := rand.New(rand.NewSource(rows))
			want := make([]float64, per)
			for i := range x {
				x[i] = rng.Float32() - 0.3
				want[i%per] += float64(x[i])
			}
			add := []float32{1, 2, 3, 4, 5}
			sum := func(seed int64, dst, add []float32) []float32 {
				SumRows(cutter{rng: rand.New(rand.NewSource(seed))}, rows, width, dst, add, func(acc []float32, r int64) {
					vec.Add(acc, acc, x[r*width:(r+1)*width])
				})
				return dst
			}
			first := sum(1, make([]float32, per), add)
			for i, got := range first {
				if w := want[i] + float64(add[i]); math.Abs(float64(got)-w) > 2e-6*math.Abs(w) {
					t.Errorf("%d rows, %d groups: [%d] = %v, want %v", rows, groups, i, got, w)
				}
			}
			for seed := range int64(4) {
				own := append([]float32(nil), add...)
				for i, got := range sum(seed, own, own) {
					if got != first[i] {
						t.Errorf("%d rows, %d groups, cut %d: [%d] = %v, want %v to the bit", rows, groups, seed, i, got, first[i])
					}
				}
			}
			if none := sum(5, make([]float32, per), nil); none[0] == first[0] {
				t.Error("nothing to add, and yet the sums are equal")
			}
		}
	}
}

// TestScratch: memory is of the size asked for, also when it comes back smaller or larger.
func TestScratch(t *testing.T) {
	for _, n := range []int64{10, 1000, 3, 1 << 16, 0, 10} {
		s := Floats(n)
		if int64(len(s.F)) != n {
			t.Errorf("%d elements, want %d", len(s.F), n)
		}
		s.Free()
	}
}
