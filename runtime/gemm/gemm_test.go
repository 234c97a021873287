package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func random(r *rand.Rand, n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = float32(r.NormFloat64())
	}
	return s
}

// onAll runs f once for each instruction set of this machine.
func onAll(t *testing.T, f func(t *testing.T)) {
	sets := machine
	if len(sets) == 0 {
		sets = []*kernels{active}
	}
	for _, k := range sets {
		t.Run(k.name, func(t *testing.T) {
			was := active
			active = k
			defer func() { active = was }()
			f(t)
		})
	}
}

// multiply calls one of the three forms on operands of C [m,n] over k terms.
func multiply(form string, p Parallel, m, n, k int, c, a, b, add, bias []float32) {
	switch form {
	case "NT":
		NT(p, m, n, k, c, a, b, add, bias)
	case "NN":
		NN(p, m, n, k, c, a, b, add)
	case "TN":
		TN(p, m, n, k, c, a, b, add)
	}
}

// reference is the sum in float64, and the sum of absolute terms that bounds rounding.
func reference(form string, m, n, k int, a, b, add, bias []float32) (c, scale []float64) {
	c, scale = make([]float64, m*n), make([]float64, m*n)
	for i := range m {
		for x := range n {
			var s, abs float64
			for l := range k {
				var av, bv float32
				switch form {
				case "NT":
					av, bv = a[i*k+l], b[x*k+l]
				case "NN":
					av, bv = a[i*k+l], b[l*n+x]
				case "TN":
					av, bv = a[l*m+i], b[l*n+x]
				}
				s += float64(av) * float64(bv)
				abs += math.Abs(float64(av) * float64(bv))
			}
			if add != nil {
				s += float64(add[i*n+x])
			}
			if bias != nil {
				s += float64(bias[x])
			}
			c[i*n+x], scale[i*n+x] = s, abs+1
		}
	}
	return c, scale
}

// TestAgainstFloat64: all forms, addends and edges of tiles, panels and blocks.
func TestAgainstFloat64(t *testing.T) {
	onAll(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, s := range [][3]int{
			{1, 1, 1}, {1, 33, 7}, {2, 64, 48}, {3, 5, 385}, {13, 31, 16}, {14, 32, 256}, {15, 33, 17},
			{28, 96, 390}, {9, 17, 800}, {130, 40, 33}, {6, 16, 1100}, {64, 50, 0},
		} {
			m, n, k := s[0], s[1], s[2]
			for _, form := range []string{"NT", "NN", "TN"} {
				for _, with := range []string{"", "add", "self", "bias", "add+bias"} {
					if form != "NT" && (with == "bias" || with == "add+bias") {
						continue
					}
					a, b, c := random(r, m*k), random(r, n*k), random(r, m*n)
					var add, bias []float32
					switch with {
					case "add":
						add = random(r, m*n)
					case "self":
						add = c
					case "bias":
						bias = random(r, n)
					case "add+bias":
						add, bias = random(r, m*n), random(r, n)
					}
					want, scale := reference(form, m, n, k, a, b, add, bias)
					multiply(form, goroutines(2), m, n, k, c, a, b, add, bias)
					for i := range c {
						if d := math.Abs(float64(c[i]) - want[i]); !(d <= 3e-7*scale[i]) {
							t.Fatalf("%s %v %s: C[%d] = %v, want %v", form, s, with, i, c[i], want[i])
						}
					}
				}
			}
		}
	})
}

// TestRowsAlone: a row of the result has the same bits computed alone, among others, at
// another place, and by any number of threads.
func TestRowsAlone(t *testing.T) {
	onAll(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, s := range [][3]int{{64, 70, 300}, {45, 129, 64}, {33, 32, 1025}} {
			m, n, k := s[0], s[1], s[2]
			a, b, bias := random(r, m*k), random(r, n*k), random(r, n)
			whole, one := make([]float32, m*n), make([]float32, m*n)
			NT(goroutines(3), m, n, k, whole, a, b, nil, bias)
			for lo := 0; lo < m; {
				rows := min(1+lo%5, m-lo)
				NT(goroutines(1), rows, n, k, one[lo*n:], a[lo*k:], b, nil, bias)
				lo += rows
			}
			for i := range whole {
				if whole[i] != one[i] {
					t.Fatalf("%v: element %d is %v among all rows, %v among few", s, i, whole[i], one[i])
				}
			}
			// Columns too: a panel of the weight alone.
			NN(goroutines(2), m, n, k, whole, a, b, nil)
			sub := make([]float32, k*7)
			for l := range k {
				copy(sub[l*7:][:7], b[l*n+11:])
			}
			few := make([]float32, m*7)
			NN(goroutines(2), m, 7, k, few, a, sub, nil)
			for i := range m {
				for x := range 7 {
					if few[i*7+x] != whole[i*n+11+x] {
						t.Fatalf("%v: C[%d,%d] depends on the number of columns", s, i, x)
					}
				}
			}
		}
	})
}

// TestPitch: rows with gaps between them give the bits of rows without, and gaps are left alone.
func TestPitch(t *testing.T) {
	onAll(t, func(t *testing.T) {
		const gap = float32(-77)
		r := rand.New(rand.NewPCG(7, 8))
		spread := func(rows, n, ld int, v []float32) []float32 { // rows of n, ld apart; the last without a gap
			w := make([]float32, (rows-1)*ld+n)
			for i := range w {
				w[i] = gap
				if row, x := i/ld, i%ld; x < n && v != nil {
					w[i] = v[row*n+x]
				}
			}
			return w
		}
		for _, s := range [][4]int{{5, 33, 7, 64}, {14, 32, 256, 32}, {30, 70, 390, 128}, {64, 301, 500, 320}} {
			m, n, k, ld := s[0], s[1], s[2], s[3]
			x, w, add, bias := random(r, m*k), random(r, n*k), random(r, m*n), random(r, n)
			y, dx, dw := make([]float32, m*n), make([]float32, m*k), make([]float32, n*k)
			NT(goroutines(2), m, n, k, y, x, w, add, bias)
			NN(goroutines(2), m, k, n, dx, y, w, nil)
			TN(goroutines(2), n, k, m, dw, y, x, nil)
			want := spread(m, n, ld, y)
			got := spread(m, n, ld, nil)
			NTPitch(goroutines(2), m, n, k, got, ld, x, w, spread(m, n, ld, add), bias)
			if !slices.Equal(got, want) {
				t.Errorf("%v: NTPitch differs", s)
			}
			other := make([]float32, m*k)
			if NNPitch(goroutines(2), m, k, n, other, got, ld, w, nil); !slices.Equal(other, dx) {
				t.Errorf("%v: NNPitch differs", s)
			}
			other = make([]float32, n*k)
			if TNPitch(goroutines(2), n, k, m, other, got, ld, x, nil); !slices.Equal(other, dw) {
				t.Errorf("%v: TNPitch differs", s)
			}
		}
	})
}

// TestSpecials: infinities and NaN pass through as IEEE says, and do not leak to other rows
// or columns.
func TestSpecials(t *testing.T) {
	onAll(t, func(t *testing.T) {
		const m, n, k = 17, 35, 40
		r := rand.New(rand.NewPCG(5, 6))
		a, b, c := random(r, m*k), random(r, n*k), make([]float32, m*n)
		a[16*k+3] = float32(math.Inf(1))
		b[34*k+5] = float32(math.NaN())
		NT(goroutines(2), m, n, k, c, a, b, nil, nil)
		for i := range m {
			for x := range n {
				v := float64(c[i*n+x])
				if (i == 16 || x == 34) == (!math.IsNaN(v) && !math.IsInf(v, 0)) {
					t.Fatalf("C[%d,%d] = %v", i, x, v)
				}
			}
		}
	})
}

func BenchmarkGEMM(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range [][3]int{{2048, 192, 192}, {2048, 512, 192}, {2048, 192, 512}, {1024, 768, 768},
		{1024, 3072, 768}, {1024, 768, 3072}, {256, 50257, 768}, {1, 3072, 768}} {
		m, n, k := s[0], s[1], s[2]
		x, w, y := random(r, m*k), random(r, n*k), random(r, m*n)
		for _, threads := range []int{1, 2} {
			for _, form := range []string{"NT", "NN", "TN"} {
				b.Run(fmt.Sprintf("%s/%dx%dx%d/threads=%d", form, m, n, k, threads), func(b *testing.B) {
					best := math.Inf(1)
					for b.Loop() {
						t := now()
						switch form {
						case "NT":
							NT(goroutines(threads), m, n, k, y, x, w, nil, nil)
						case "NN":
							NN(goroutines(threads), m, k, n, x, y, w, nil)
						case "TN":
							TN(goroutines(threads), n, k, m, w, y, x, nil)
						}
						best = min(best, now()-t)
					}
					b.ReportMetric(2*float64(m)*float64(n)*float64(k)/best/1e9, "GFLOP/s")
				})
			}
		}
	}
}

// TestBlock: packed blocks against float64, and their elements the same alone.
func TestBlock(t *testing.T) {
	onAll(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for _, s := range [][3]int{{1, 1, 1}, {14, 32, 64}, {15, 33, 5}, {64, 112, 32}, {112, 64, 64}, {56, 100, 80}} {
			m, n, k := s[0], s[1], s[2]
			lda, ldc := m+3, n+5
			a, rows, c := random(r, k*lda+Slack), random(r, k*n), random(r, m*ldc)
			cols := make([]float32, n*k)
			Transpose(cols, k, rows, n, n, k)
			packed, packed2 := make([]float32, Packed(k, n)), make([]float32, Packed(k, n))
			PackRows(packed, rows, n, k, n)
			PackCols(packed2, cols, k, k, n)
			for i := range packed {
				if packed[i] != packed2[i] {
					t.Fatalf("%v: the two ways to pack differ at %d", s, i)
				}
			}
			for _, add := range []bool{false, true} {
				got := append([]float32(nil), c...)
				var w Tile
				w.Block(m, n, k, got, ldc, add, a, lda, packed)
				for i := range m {
					for x := range ldc {
						want, tol := float64(c[i*ldc+x]), 0.0
						if x < n {
							if !add {
								want = 0
							}
							for l := range k {
								want += float64(a[l*lda+i]) * float64(rows[l*n+x])
								tol += 1e-6
							}
						}
						if d := math.Abs(float64(got[i*ldc+x]) - want); d > tol {
							t.Fatalf("%v add=%v: C[%d,%d] = %v, want %v", s, add, i, x, got[i*ldc+x], want)
						}
					}
				}
			}
			// One row and one column alone.
			row, one := make([]float32, ldc), make([]float32, 1)
			whole := make([]float32, m*ldc)
			var w Tile
			w.Block(m, n, k, whole, ldc, false, a, lda, packed)
			w.Block(1, n, k, row, ldc, false, a[m-1:], lda, packed)
			PackRows(packed2, rows[n-1:], n, k, 1)
			w.Block(1, 1, k, one, 1, false, a[m-1:], lda, packed2)
			for x := range n {
				if row[x] != whole[(m-1)*ldc+x] {
					t.Fatalf("%v: column %d of the last row differs alone", s, x)
				}
			}
			if one[0] != row[n-1] {
				t.Fatalf("%v: last element differs alone", s)
			}
		}
	})
}

// TestApartAndTogether: both ways to share the work give the same bits, also over several
// groups of rows and terms.
func TestApartAndTogether(t *testing.T) {
	onAll(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 10))
		for _, s := range [][3]int{{1100, 37, 1030}, {40, 200, 600}, {2050, 5, 600}} {
			m, n, k := s[0], s[1], s[2]
			a, b, add, bias := random(r, m*k), random(r, n*k), random(r, m*n), random(r, n)
			for name, j := range map[string]job{
				"NT": {m: m, n: n, k: k, ldc: n, add: add, bias: bias, a: mat{a, k, 1}, b: mat{b, 1, k}},
				"NN": {m: m, n: n, k: k, ldc: n, a: mat{a, k, 1}, b: mat{b, n, 1}},
				"TN": {m: m, n: n, k: k, ldc: n, add: add, a: mat{a, 1, m}, b: mat{b, n, 1}},
			} {
				one, two := j, j
				one.kernels, two.kernels = *active, *active
				one.c, two.c = make([]float32, m*n), make([]float32, m*n)
				one.apart(goroutines(3))
				two.together(goroutines(2))
				for i := range one.c {
					if one.c[i] != two.c[i] {
						t.Fatalf("%s %v: element %d is %v apart, %v together", name, s, i, one.c[i], two.c[i])
					}
				}
				want, scale := reference(name, m, n, k, a, b, j.add, j.bias)
				for i := range one.c {
					if d := math.Abs(float64(one.c[i]) - want[i]); !(d <= 3e-7*scale[i]) {
						t.Fatalf("%s %v: C[%d] = %v, want %v", name, s, i, one.c[i], want[i])
					}
				}
			}
		}
	})
}

// TestPacksAreShared: products one after another, each larger than the last, pack into one piece of
// memory that none of them makes anew.
func TestPacksAreShared(t *testing.T) {
	onAll(t, func(t *testing.T) {
		for len(packs) > 0 {
			<-packs
		}
		var first *float32
		for k := 100; k <= 1600; k *= 2 {
			a, b, c := make([]float32, 700*k), make([]float32, 200*k), make([]float32, 700*200)
			j := &job{kernels: *active, m: 700, n: 200, k: k, ldc: 200, c: c, a: mat{a, k, 1}, b: mat{b, 200, 1}}
			j.together(goroutines(2))
			if len(packs) != 1 {
				t.Fatalf("%d pieces are kept", len(packs))
			}
			s := <-packs
			packs <- s
			if p := &(*s)[0]; first == nil {
				first = p
			} else if p != first {
				t.Errorf("k %d: memory of its own", k)
			}
		}
	})
}
