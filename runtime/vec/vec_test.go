package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// onAll runs f with every implementation of this machine.
func onAll(t *testing.T, f func(t *testing.T)) {
	was := level
	defer use(was)
	for l := range machine {
		t.Run(l.String(), func(t *testing.T) {
			use(l)
			f(t)
		})
	}
}

func random(r *rand.Rand, n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = float32(r.NormFloat64())
	}
	return s
}

// ulps is the distance of got from want in units of want's last place; below the smallest
// normal number the unit is that of the smallest normal number.
func ulps(got float32, want float64) float64 {
	w := float32(want)
	switch {
	case math.IsNaN(want) || math.IsNaN(float64(got)):
		if math.IsNaN(want) && math.IsNaN(float64(got)) {
			return 0
		}
		return math.Inf(1)
	case math.IsInf(float64(w), 0) || math.IsInf(float64(got), 0):
		if w == got {
			return 0
		}
		return math.Inf(1)
	}
	unit := math.Abs(float64(w)) * 0x1p-23
	return math.Abs(float64(got)-want) / max(unit, 0x1p-149)
}

func sigmoid64(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// scalars are the functions of one variable with their values and derivatives, and the error
// allowed: in ulps of the larger of result and floor.
var scalars = []struct {
	name          string
	f             func(dst, a []float32)
	back          func(dst, add, dy, a []float32)
	y, d          func(x float64) float64
	ulp           float64
	ulpD          float64
	lo, hi        float64
	floor, floorD float64
}{
	{"exp", Exp, nil, math.Exp, nil, 1.01, 0, -87.3, 88.72, 0, 0},
	{"sigmoid", Sigmoid, SigmoidBackward, sigmoid64,
		func(x float64) float64 { return sigmoid64(x) * sigmoid64(-x) }, 2.5, 5, -80, 80, 0, 0},
	{"silu", Silu, SiluBackward, func(x float64) float64 { return x * sigmoid64(x) },
		func(x float64) float64 { s := sigmoid64(x); return s * (1 + x*(1-s)) }, 3, 3, -80, 80, 0, 0.5},
	{"tanh", Tanh, TanhBackward, math.Tanh,
		func(x float64) float64 { t := math.Tanh(x); return 1 - t*t }, 2, 3, -30, 30, 0, 0.5},
	{"gelutanh", GeluTanh, GeluTanhBackward, func(x float64) float64 { return x * sigmoid64(2*geluInner(x)) },
		func(x float64) float64 {
			s := sigmoid64(2 * geluInner(x))
			return s + 2*x*s*(1-s)*geluScale*(1+3*geluCubic*x*x)
		}, 8, 4, -9, 9, 1e-2, 0.5},
	{"geluerf", GeluErf, GeluErfBackward, func(x float64) float64 { return x * gaussCDF(x) },
		func(x float64) float64 { return gaussCDF(x) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi) }, 5, 4, -12, 12, 0, 0.25},
	{"relu", Relu, ReluBackward, func(x float64) float64 { return max(x, 0) },
		func(x float64) float64 { return float64(dRelu(float32(x))) }, 0, 0, -3, 3, 0, 0},
	{"relu2", Relu2, Relu2Backward, func(x float64) float64 { return max(x, 0) * max(x, 0) },
		func(x float64) float64 { return 2 * max(x, 0) }, 1, 0, -3, 3, 0, 0},
}

// TestScalarFunctions: values and derivatives against float64 over the whole range and near
// 0; the largest error is printed.
func TestScalarFunctions(t *testing.T) {
	onAll(t, func(t *testing.T) {
		for _, s := range scalars {
			const n = 1 << 16
			x, y, one := make([]float32, n), make([]float32, n), make([]float32, n)
			for i := range x {
				x[i] = float32(s.lo + (s.hi-s.lo)*float64(i)/(n-1))
				if i%4 == 3 {
					x[i] *= float32(math.Exp(-float64(i) / n * 30)) // towards 0
				}
				one[i] = 1
			}
			check := func(what string, limit, floor float64, want func(float64) float64) {
				var worst, at float64
				for i := range x {
					w := want(float64(x[i]))
					e := ulps(y[i], w)
					if math.Abs(w) < floor {
						e = math.Abs(float64(y[i])-w) / (floor * 0x1p-23)
					}
					if !(e <= worst) {
						worst, at = e, float64(x[i])
					}
				}
				t.Logf("%-9s %s: at most %.2f ulp (allowed %.2f), at %v", s.name, what, worst, limit, at)
				if !(worst <= limit) {
					t.Errorf("%s %s: %.2f ulp at %v, allowed %.2f", s.name, what, worst, at, limit)
				}
			}
			s.f(y, x)
			check("value", s.ulp, s.floor, s.y)
			if s.back != nil {
				s.back(y, nil, one, x)
				check("slope", s.ulpD, s.floorD, s.d)
			}
		}
	})
}

// TestSpecialValues: infinities, NaN and the ends of exp.
func TestSpecialValues(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	cases := []struct {
		name string
		f    func(dst, a []float32)
		x, y float32
	}{
		{"exp", Exp, inf, inf}, {"exp", Exp, -inf, 0}, {"exp", Exp, nan, nan}, {"exp", Exp, 89, inf},
		{"exp", Exp, -88, 0}, {"exp", Exp, 1e30, inf}, {"exp", Exp, -1e30, 0}, {"exp", Exp, 0, 1},
		{"sigmoid", Sigmoid, inf, 1}, {"sigmoid", Sigmoid, -inf, 0}, {"sigmoid", Sigmoid, nan, nan},
		{"silu", Silu, inf, inf}, {"silu", Silu, nan, nan}, {"silu", Silu, -200, 0},
		{"tanh", Tanh, inf, 1}, {"tanh", Tanh, -inf, -1}, {"tanh", Tanh, nan, nan}, {"tanh", Tanh, 0, 0},
		{"gelutanh", GeluTanh, inf, inf}, {"gelutanh", GeluTanh, nan, nan}, {"gelutanh", GeluTanh, -1e15, 0},
		{"geluerf", GeluErf, inf, inf}, {"geluerf", GeluErf, nan, nan}, {"geluerf", GeluErf, -1e15, 0},
		{"relu", Relu, nan, nan}, {"relu", Relu, -inf, 0}, {"relu2", Relu2, nan, nan}, {"relu2", Relu2, 1e30, inf},
	}
	slope := []struct {
		name string
		f    func(dst, add, dy, a []float32)
		x, y float32
	}{
		{"silu", SiluBackward, 1e30, 1}, {"silu", SiluBackward, -200, 0}, {"silu", SiluBackward, nan, nan},
		{"gelutanh", GeluTanhBackward, 1e20, 1}, {"gelutanh", GeluTanhBackward, -1e20, 0},
		{"gelutanh", GeluTanhBackward, nan, nan}, {"geluerf", GeluErfBackward, 1e20, 1},
		{"geluerf", GeluErfBackward, -1e20, 0}, {"geluerf", GeluErfBackward, nan, nan},
		{"tanh", TanhBackward, 100, 0}, {"sigmoid", SigmoidBackward, -200, 0},
	}
	onAll(t, func(t *testing.T) {
		for _, n := range []int{1, 16, 19} {
			x, y, one := make([]float32, n), make([]float32, n), make([]float32, n)
			Fill(one, 1)
			verify := func(name string, at, want float32) {
				for i := range y {
					// -0 and results below the smallest normal number count as 0.
					if y[i] != want && !(want == 0 && math.Abs(float64(y[i])) < 0x1p-120) && !(want != want && y[i] != y[i]) {
						t.Errorf("%s(%v) = %v at %d of %d, want %v", name, at, y[i], i, n, want)
					}
				}
			}
			for _, c := range cases {
				Fill(x, c.x)
				c.f(y, x)
				verify(c.name, c.x, c.y)
			}
			for _, c := range slope {
				Fill(x, c.x)
				c.f(y, nil, one, x)
				verify(c.name+"'", c.x, c.y)
			}
		}
	})
}

// elementwise are the calls whose element i depends on element i of the sources only.
var elementwise = func() map[string]func(dst, dst2 []float32, s [5][]float32, add bool) {
	m := map[string]func(dst, dst2 []float32, s [5][]float32, add bool){
		"add":       func(d, _ []float32, s [5][]float32, _ bool) { Add(d, s[0], s[1]) },
		"sub":       func(d, _ []float32, s [5][]float32, _ bool) { Sub(d, s[0], s[1]) },
		"mul":       func(d, _ []float32, s [5][]float32, _ bool) { Mul(d, s[0], s[1]) },
		"muladd":    func(d, _ []float32, s [5][]float32, _ bool) { MulAdd(d, s[0], s[1], s[2]) },
		"scale":     func(d, _ []float32, s [5][]float32, _ bool) { Scale(d, s[0], 1.7) },
		"mulscale":  func(d, _ []float32, s [5][]float32, _ bool) { MulScale(d, s[0], s[1], 1.7) },
		"addscaled": func(d, _ []float32, s [5][]float32, _ bool) { AddScaled(d, s[0], 1.7, s[1]) },
		"swiglu":    func(d, _ []float32, s [5][]float32, _ bool) { SwiGLU(d, s[0], s[1]) },
		"softcap":   func(d, _ []float32, s [5][]float32, _ bool) { Softcap(d, s[0], 0.9) },
		"softcap'": func(d, _ []float32, s [5][]float32, add bool) {
			SoftcapBackward(d, opt(s[2], add), s[1], s[0], 0.9)
		},
		"swiglu'": func(d, d2 []float32, s [5][]float32, add bool) {
			SwiGLUBackward(d, d2, opt(s[3], add), opt(s[4], add), s[2], s[0], s[1])
		},
		"norm": func(d, _ []float32, s [5][]float32, add bool) {
			NormApply(d, s[0], 0.3, 1.2, opt(s[1], add), opt(s[2], add))
		},
		"norm'": func(d, _ []float32, s [5][]float32, add bool) {
			NormBackward(d, opt(s[3], add), s[0], s[1], opt(s[2], add), 0.3, 1.2, 0.1, -0.2)
		},
		"normweight": func(d, d2 []float32, s [5][]float32, add bool) {
			copy(d, s[2])
			copy(d2, s[3])
			NormWeight(d, opt(d2, add), s[0], s[1], 0.3, 1.2)
		},
		"adamw": func(d, d2 []float32, s [5][]float32, _ bool) {
			copy(d, s[0])
			m, v := append([]float32(nil), s[2][:len(d)]...), make([]float32, len(d))
			Mul(v, s[3], s[3])
			AdamWStep(d, s[1], m, v, &AdamW{0.7, 0.9, 0.1, 0.99, 0.01, 0.999, 0.02, 3, 1e-8})
			Sub(d2, m, v)
		},
	}
	for _, s := range scalars {
		m[s.name] = func(d, _ []float32, src [5][]float32, _ bool) { s.f(d, src[0]) }
		if s.back != nil {
			m[s.name+"'"] = func(d, _ []float32, src [5][]float32, add bool) { s.back(d, opt(src[2], add), src[1], src[0]) }
		}
	}
	return m
}()

func opt(s []float32, present bool) []float32 {
	if present {
		return s
	}
	return nil
}

// TestPlaceDoesNotMatter: an element's bits are the same wherever the slice is cut, so that
// threads may cut it anywhere.
func TestPlaceDoesNotMatter(t *testing.T) {
	onAll(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		const n = 70
		var src [5][]float32
		for i := range src {
			src[i] = random(r, n)
		}
		for name, f := range elementwise {
			for _, add := range []bool{false, true} {
				whole, whole2 := make([]float32, n), make([]float32, n)
				f(whole, whole2, src, add)
				for lo := 0; lo < n; {
					hi := min(n, lo+1+lo%23)
					var part [5][]float32
					for i := range src {
						part[i] = src[i][lo:hi]
					}
					d, d2 := make([]float32, hi-lo), make([]float32, hi-lo)
					f(d, d2, part, add)
					for i := range d {
						if d[i] != whole[lo+i] || d2[i] != whole2[lo+i] {
							t.Fatalf("%s: element %d is %v in the whole, %v in [%d,%d)", name, lo+i, whole[lo+i], d[i], lo, hi)
						}
					}
					lo = hi
				}
			}
		}
	})
}

// TestLevelsAgree: every implementation gives what the plain one gives, to rounding.
func TestLevelsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const n = 133
	var src [5][]float32
	for i := range src {
		src[i] = random(r, n)
	}
	was := level
	defer use(was)
	for name, f := range elementwise {
		for _, add := range []bool{false, true} {
			use(Plain)
			want, want2 := make([]float32, n), make([]float32, n)
			f(want, want2, src, add)
			for l := range machine {
				use(l)
				got, got2 := make([]float32, n), make([]float32, n)
				f(got, got2, src, add)
				for i := range got {
					for _, p := range [][2]float32{{got[i], want[i]}, {got2[i], want2[i]}} {
						if d := math.Abs(float64(p[0] - p[1])); !(d <= 2e-6*(1+math.Abs(float64(p[1])))) {
							t.Fatalf("%s %v: element %d is %v, plain %v", name, l, i, p[0], p[1])
						}
					}
				}
			}
		}
	}
}

// TestReductions against float64, at every length around the vector sizes.
func TestReductions(t *testing.T) {
	onAll(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		for n := range 70 {
			a, b, c := random(r, n), random(r, n), random(r, n)
			var dot, dot3, sum, sq, dev, se float64
			top := math.Inf(-1)
			for i := range a {
				x, y, z := float64(a[i]), float64(b[i]), float64(c[i])
				dot += x * y
				dot3 += float64(a[i]*b[i]) * z
				sum += x
				sq += x * x
				d := float64(a[i] - 0.25)
				dev += d * d
				se += math.Exp(float64(a[i] - 0.5))
				top = max(top, x)
			}
			dst := make([]float32, n)
			for _, v := range []struct {
				name      string
				got, want float64
				tol       float64
			}{
				{"Dot", Dot(a, b), dot, 1e-13}, {"Dot3", Dot3(a, b, c), dot3, 1e-13}, {"Sum", Sum(a), sum, 1e-13},
				{"SumSq", SumSq(a), sq, 1e-13}, {"SumSqDev", SumSqDev(a, 0.25), dev, 1e-13},
				{"SumExp", SumExp(a, 0.5), se, 2e-7}, {"ExpSub", float64(ExpSub(dst, a, 0.5)), se, 1e-6},
			} {
				if d := math.Abs(v.got - v.want); !(d <= v.tol*float64(n+1)*4) {
					t.Errorf("%s of %d elements: %v, want %v", v.name, n, v.got, v.want)
				}
			}
			if got := float64(Max(a)); got != top {
				t.Errorf("Max of %d elements: %v, want %v", n, got, top)
			}
		}
	})
}

// TestRotations: lengths are kept, the inverse undoes, in place works, add adds.
func TestRotations(t *testing.T) {
	onAll(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for _, half := range []int{1, 5, 16, 24, 64} {
			cos, sin, neg := make([]float32, half), make([]float32, half), make([]float32, half)
			for i := range cos {
				s, c := math.Sincos(r.Float64() * 7)
				cos[i], sin[i], neg[i] = float32(c), float32(s), float32(-s)
			}
			for name, f := range map[string]func(dst, add, a, cos, sin []float32){"half": RotateHalf, "pairs": RotatePairs} {
				a, add := random(r, 2*half), random(r, 2*half)
				y, z := make([]float32, 2*half), make([]float32, 2*half)
				f(y, nil, a, cos, sin)
				if d := math.Abs(SumSq(y) - SumSq(a)); d > 1e-5*SumSq(a) {
					t.Errorf("%s %d: length changed by %v", name, half, d)
				}
				f(z, add, a, cos, sin)
				copy(y, a)
				f(y, nil, y, cos, sin)
				for i := range z {
					if d := math.Abs(float64(z[i] - add[i] - y[i])); d > 1e-6 {
						t.Errorf("%s %d: with add off by %v", name, half, d)
					}
				}
				f(y, nil, y, cos, neg)
				for i := range a {
					if d := math.Abs(float64(a[i] - y[i])); d > 1e-6 {
						t.Errorf("%s %d: inverse off by %v", name, half, d)
					}
				}
			}
			// Element 0 and its partner turn by the angle itself.
			a, y := make([]float32, 2*half), make([]float32, 2*half)
			a[0] = 1
			RotateHalf(y, nil, a, cos, sin)
			if y[0] != cos[0] || y[half] != sin[0] {
				t.Errorf("half %d: (1, 0) became (%v, %v)", half, y[0], y[half])
			}
		}
	})
}

// TestSoftmaxBlocks: a softmax taken in blocks equals one taken whole, also when a column
// sees nothing in the first block; its gradient follows.
func TestSoftmaxBlocks(t *testing.T) {
	onAll(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 10))
		const rows, ld, cols, scale = 24, 40, 32, 0.7
		inf := float32(math.Inf(-1))
		s := random(r, rows*ld)
		for j := range rows {
			for q := range cols {
				if j > q || (q > 20 && j < 9) {
					s[j*ld+q] = inf
				}
			}
		}
		p := append([]float32(nil), s...)
		m, l, alpha := make([]float32, cols), make([]float32, cols), make([]float32, cols)
		Fill(m, inf)
		for j := 0; j < rows; j += 8 {
			SoftmaxColumns(p[j*ld:], ld, 8, m, l, alpha, scale)
			for i := range j {
				Mul(p[i*ld:][:cols], p[i*ld:], alpha)
			}
		}
		for q := range cols {
			var sum float64
			for j := range rows {
				sum += math.Exp(scale * float64(s[j*ld+q]))
			}
			for j := range rows {
				want := math.Exp(scale*float64(s[j*ld+q])) / sum
				if got := float64(p[j*ld+q] / l[q]); math.Abs(got-want) > 1e-6 {
					t.Fatalf("p[%d,%d] = %v, want %v", j, q, got, want)
				}
			}
		}
		for _, cap := range []float32{0, 1.5} {
			sr, dp := random(r, cols), random(r, cols)
			pr, ds := append([]float32(nil), sr...), append([]float32(nil), dp...)
			SoftmaxGrad(pr, ds, scale, 0.4, 0.2, cap)
			for i := range pr {
				x, bend := scale*float64(sr[i]), 1.0
				if cap > 0 {
					th := math.Tanh(x / float64(cap))
					x, bend = float64(cap)*th, 1-th*th
				}
				wp := math.Exp(x - float64(float32(0.4)))
				wd := wp * (float64(dp[i]) - 0.2) * scale * bend
				if math.Abs(float64(pr[i])-wp) > 1e-6*(1+wp) || math.Abs(float64(ds[i])-wd) > 2e-6*(1+math.Abs(wd)) {
					t.Fatalf("cap %v: p, ds = %v, %v, want %v, %v", cap, pr[i], ds[i], wp, wd)
				}
			}
		}
	})
}

func BenchmarkVec(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 2048
	var src [5][]float32
	for i := range src {
		src[i] = random(r, n)
	}
	d, d2 := make([]float32, n), make([]float32, n)
	for name, f := range elementwise {
		b.Run(fmt.Sprintf("%s/%v", name, level), func(b *testing.B) {
			for b.Loop() {
				f(d, d2, src, true)
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/n*1e9, "ns/element")
		})
	}
}

// TestAddSquares: every implementation gives the same bits, at every length, and leaves what is
// beyond the end.
func TestAddSquares(t *testing.T) {
	for _, n := range []int{1, 15, 16, 17, 100, 1024} {
		a, acc := make([]float32, n), make([]float64, (n+15)/16*16+16)
		want := make([]float64, len(acc))
		for i := range acc {
			acc[i] = float64(i) / 3
		}
		copy(want, acc)
		for i := range a {
			a[i] = float32(i)*0.37 - 11
			want[i] += float64(a[i]) * float64(a[i])
		}
		for l := range machine {
			got := slices.Clone(acc)
			machine[l].addSquares(got, a)
			if !slices.Equal(got, want) {
				t.Errorf("%v, %d elements: other bits", l, n)
			}
		}
	}
}
