package embed

import (
	"slices"
	"testing"

	"github.com/megatrain/mtc/runtime/ops/optest"
)

// TestCUDAUneven: rows most of which share few ids, or ids far apart, at numbers that are sorted at once and
// that are not. Sums of small whole numbers are exact, so every bit is known.
func TestCUDAUneven(t *testing.T) {
	optest.OnGPU(t, func(t *testing.T, f32 bool) {
		for _, c := range []struct {
			name    string
			rows, v int
			id      func(r int) int
		}{
			{"runs of every length", 5000, 300, lengths(0)},
			{"those from another tile on", 3001, 300, lengths(37)},
			{"long ones", sortRows + 77, 300, lengths(180)},
			{"whole tiles", 2048, 64, func(r int) int { return r / tile }},
			{"halves of tiles", 2048, 128, func(r int) int { return 2 * r / tile }},
			{"two tiles each", sortRows + 1, 65, func(r int) int { return r / 2 / tile }},
			{"three halves each", 3000, 64, func(r int) int { return 2 * r / 3 / tile }},
			{"one id", sortRows, 300, func(int) int { return 77 }},
			{"one id of most", 3000, 40000, func(r int) int {
				if r%4 == 1 {
					return r * 13
				}
				return 5
			}},
			{"ids 128 apart", 5001, 1 << 17, func(r int) int { return 5 + r*37%500*128 }},
			{"ids 512 apart", sortRows + 77, 1 << 19, func(r int) int { return r * 37 % 500 * 512 }},
			{"each once", 2000, 2000, func(r int) int { return 1999 - r }},
		} {
			// One vector, none that is whole, and more columns than a block has.
			for _, d := range []int{8, 7, 1100} {
				if d != 8 && c.rows != 5000 {
					continue
				}
				ids, dy, want := make([]int32, c.rows), make([]float32, c.rows*d), make([]float32, c.v*d)
				for r := range ids {
					ids[r] = int32(c.id(r) % c.v)
					for k := range d {
						dy[r*d+k] = float32((r*7+k*3)%31 - 15)
						want[int(ids[r])*d+k] += dy[r*d+k]
					}
				}
				m := optest.GPU(t, f32)
				dw := m.F32(make([]float32, c.v*d)...)
				BackwardWeight(m.Queue, BackwardWeightArgs{Ids: m.I32(ids...), DY: m.Act(dy...), AddDWeight: dw, DWeight: dw, Rows: c.rows, V: c.v, D: d})
				m.Sync()
				if got := m.ReadF32(dw, int64(c.v*d)); !slices.Equal(got, want) {
					i := 0
					for got[i] == want[i] {
						i++
					}
					t.Errorf("%s: id %d, column %d of %d: %v, want %v", c.name, i/d, i%d, d, got[i], want[i])
				}
			}
		}
	})
}

// lengths gives ids of which one has more rows than the one before, from some number on, here and there.
func lengths(from int) func(r int) int {
	var ids []int
	for n := 0; len(ids) < 1<<15; n++ {
		for range from + n {
			ids = append(ids, n)
		}
	}
	return func(r int) int { return ids[r*7919%10007] }
}
