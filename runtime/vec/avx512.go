//go:build goexperiment.simd && amd64 && !race

package vec

import (
	"math"
	"simd/archsimd"
	"unsafe"
)

type (
	v16   = archsimd.Float32x16
	d16   = archsimd.Float64x8
	arr16 = [16]float32
)

const lanes16 = 16

// get16 loads the vector at element i, which must lie in s.
func get16(s []float32, i int) v16 {
	return archsimd.LoadFloat32x16((*arr16)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s)), i*4)))
}

func put16(s []float32, i int, x v16) {
	x.Store((*arr16)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s)), i*4)))
}

// end16 loads what is left of s, the other lanes 0.
func end16(s []float32) v16 { return archsimd.LoadFloat32x16SlicePart(s) }

func all16(x float32) v16 { return archsimd.BroadcastFloat32x16(x) }

func zero16() (x v16) { return x }

// c16 holds the constants as whole vectors: a load is cheaper than a broadcast, for the
// processor and for the compiler's inlining budget.
var c16 = struct {
	one, two, half, minusHalf, fourteen, inf        arr16
	log2e, magic, ln2Hi, ln2Lo, maxExp, minExp      arr16
	exp0, exp1, exp2, exp3, exp4                    arr16
	tanh0, tanh1, tanh2, tanh3, tanh4, tanhSmall    arr16
	erfcT, erfc0, erfc1, erfc2, erfc3, erfc4, erfc5 arr16
	erfc6, erfc7, erfc8, erfc9, erfc10              arr16
	invSqrt2, invSqrt2Pi, geluTwice, geluTwiceCubic arr16
	geluBend                                        arr16
}{
	rep16(1), rep16(2), rep16(0.5), rep16(-0.5), rep16(14), rep16(float32(math.Inf(1))),
	rep16(log2e), rep16(roundMagic), rep16(-ln2Hi), rep16(-ln2Lo), rep16(maxExp), rep16(minExp),
	rep16(exp0), rep16(exp1), rep16(exp2), rep16(exp3), rep16(exp4),
	rep16(tanh0), rep16(tanh1), rep16(tanh2), rep16(tanh3), rep16(tanh4), rep16(tanhSmall),
	rep16(erfcT), rep16(erfc0), rep16(erfc1), rep16(erfc2), rep16(erfc3), rep16(erfc4), rep16(erfc5),
	rep16(erfc6), rep16(erfc7), rep16(erfc8), rep16(erfc9), rep16(erfc10),
	rep16(invSqrt2), rep16(invSqrt2Pi), rep16(geluTwice), rep16(geluTwiceCubic),
	rep16(3 * geluTwiceCubic),
}

func rep16(x float32) (a arr16) {
	for i := range a {
		a[i] = x
	}
	return a
}

var zeros16 arr16

// addend16 is add, or a vector of zeros that is read again and again (step 0).
func addend16(add []float32) (s []float32, step int) {
	if add == nil {
		return zeros16[:], 0
	}
	return add, 1
}

var table16 = table{
	add: add16, sub: sub16, mul: mul16, fma: fma16, scale: scale16, axpy: axpy16, mulScale: mulScale16,
	dot: dot16, dot3: dot3x16, sum: sum16, sumSq: sumSq16, sumSqDev: sumSqDev16, addSquares: addSquares16, max: max16,
	exp: exp16, expSub: expSub16, sumExp: sumExp16,
	unary: [numUnary]func(dst, a []float32){
		sigmoid16, silu16, tanh16, geluTanh16, geluErf16, relu16, relu2x16,
	},
	backward: [numUnary]func(dst, add, dy, a []float32){
		dSigmoid16, dSilu16, dTanh16, dGeluTanh16, dGeluErf16, dRelu16, dRelu2x16,
	},
	swiglu: swiglu16, swigluBackward: swigluBackward16,
	softcap: softcap16, softcapBackward: softcapBackward16,
	normApply: normApply16, normBackward: normBackward16, normWeight: normWeight16,
	rotateHalf: rotateHalf16, rotatePairs: rotatePairs,
	softmaxColumns: softmaxColumns16, softmaxGrad: softmaxGrad16,
	adamw: adamw16, adamwSplit: adamwSplit16,
}

func add16(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		put16(dst, i, get16(a, i).Add(get16(b, i)))
	}
	if i < len(dst) {
		end16(a[i:]).Add(end16(b[i:])).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func sub16(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		put16(dst, i, get16(a, i).Sub(get16(b, i)))
	}
	if i < len(dst) {
		end16(a[i:]).Sub(end16(b[i:])).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func mul16(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		put16(dst, i, get16(a, i).Mul(get16(b, i)))
	}
	if i < len(dst) {
		end16(a[i:]).Mul(end16(b[i:])).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func fma16(dst, a, b, c []float32) {
	a, b, c = a[:len(dst)], b[:len(dst)], c[:len(dst)]
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		put16(dst, i, get16(a, i).MulAdd(get16(b, i), get16(c, i)))
	}
	if i < len(dst) {
		end16(a[i:]).MulAdd(end16(b[i:]), end16(c[i:])).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func scale16(dst, a []float32, s float32) {
	a = a[:len(dst)]
	f := all16(s)
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		put16(dst, i, get16(a, i).Mul(f))
	}
	if i < len(dst) {
		end16(a[i:]).Mul(f).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func mulScale16(dst, a, b []float32, s float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	f := all16(s)
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		put16(dst, i, get16(a, i).Mul(f).Mul(get16(b, i)))
	}
	if i < len(dst) {
		end16(a[i:]).Mul(f).Mul(end16(b[i:])).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func axpy16(dst, a []float32, s float32, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	f := all16(s)
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		put16(dst, i, f.MulAdd(get16(b, i), get16(a, i)))
	}
	if i < len(dst) {
		f.MulAdd(end16(b[i:]), end16(a[i:])).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

// wide16 is x in float64, in two halves.
func wide16(x v16) (lo, hi d16) {
	return x.GetLo().ConvertToFloat64(), x.GetHi().ConvertToFloat64()
}

// total16 adds all lanes of two accumulators.
func total16(lo, hi d16) float64 {
	var s [lanes16 / 2]float64
	lo.Add(hi).Store(&s)
	archsimd.ClearAVXUpperBits()
	for n := len(s) / 2; n > 0; n /= 2 {
		for i := range n {
			s[i] += s[i+n]
		}
	}
	return s[0]
}

func dot16(a, b, _ []float32) float64 {
	b = b[:len(a)]
	var lo, hi d16
	i := 0
	for ; i+lanes16 <= len(a); i += lanes16 {
		a0, a1 := wide16(get16(a, i))
		b0, b1 := wide16(get16(b, i))
		lo, hi = a0.MulAdd(b0, lo), a1.MulAdd(b1, hi)
	}
	if i < len(a) {
		a0, a1 := wide16(end16(a[i:]))
		b0, b1 := wide16(end16(b[i:]))
		lo, hi = a0.MulAdd(b0, lo), a1.MulAdd(b1, hi)
	}
	return total16(lo, hi)
}

func dot3x16(a, b, c []float32) float64 {
	b, c = b[:len(a)], c[:len(a)]
	var lo, hi d16
	i := 0
	for ; i+lanes16 <= len(a); i += lanes16 {
		a0, a1 := wide16(get16(a, i).Mul(get16(b, i)))
		c0, c1 := wide16(get16(c, i))
		lo, hi = a0.MulAdd(c0, lo), a1.MulAdd(c1, hi)
	}
	if i < len(a) {
		a0, a1 := wide16(end16(a[i:]).Mul(end16(b[i:])))
		c0, c1 := wide16(end16(c[i:]))
		lo, hi = a0.MulAdd(c0, lo), a1.MulAdd(c1, hi)
	}
	return total16(lo, hi)
}

func sum16(a []float32) float64 {
	var lo, hi d16
	i := 0
	for ; i+lanes16 <= len(a); i += lanes16 {
		x, y := wide16(get16(a, i))
		lo, hi = lo.Add(x), hi.Add(y)
	}
	if i < len(a) {
		x, y := wide16(end16(a[i:]))
		lo, hi = lo.Add(x), hi.Add(y)
	}
	return total16(lo, hi)
}

func sumSq16(a []float32) float64 {
	var lo, hi d16
	i := 0
	for ; i+lanes16 <= len(a); i += lanes16 {
		x, y := wide16(get16(a, i))
		lo, hi = x.MulAdd(x, lo), y.MulAdd(y, hi)
	}
	if i < len(a) {
		x, y := wide16(end16(a[i:]))
		lo, hi = x.MulAdd(x, lo), y.MulAdd(y, hi)
	}
	return total16(lo, hi)
}

func addSquares16(acc []float64, a []float32) {
	i := 0
	for ; i+lanes16 <= len(a); i += lanes16 {
		addSquare16(acc[i:i+lanes16], get16(a, i))
	}
	if i < len(a) {
		addSquare16(acc[i:i+lanes16], end16(a[i:]))
	}
	archsimd.ClearAVXUpperBits()
}

func addSquare16(acc []float64, v v16) {
	const half = lanes16 / 2
	x, y := wide16(v)
	lo := (*[half]float64)(acc)
	hi := (*[half]float64)(acc[half:])
	x.MulAdd(x, archsimd.LoadFloat64x8(lo)).Store(lo)
	y.MulAdd(y, archsimd.LoadFloat64x8(hi)).Store(hi)
}

func sumSqDev16(a []float32, mean float32) float64 {
	m := all16(mean)
	var lo, hi d16
	i := 0
	for ; i+lanes16 <= len(a); i += lanes16 {
		x, y := wide16(get16(a, i).Sub(m))
		lo, hi = x.MulAdd(x, lo), y.MulAdd(y, hi)
	}
	s := total16(lo, hi)
	for ; i < len(a); i++ {
		d := float64(a[i] - mean)
		s += d * d
	}
	return s
}

func max16(a []float32) float32 {
	inf := float32(math.Inf(-1))
	m := all16(inf)
	i := 0
	for ; i+lanes16 <= len(a); i += lanes16 {
		m = get16(a, i).Max(m)
	}
	var s arr16
	m.Store(&s)
	archsimd.ClearAVXUpperBits()
	for ; i < len(a); i++ {
		s[0] = max(s[0], a[i])
	}
	top := s[0]
	for _, x := range s[1:] {
		top = max(top, x)
	}
	return top
}

// vexp16 is e^x within 1 ulp: x = n ln 2 + r, e^r as a polynomial, times 2^n by adding n to
// the exponent bits. NaN stays NaN.
func vexp16(x v16) v16 {
	n := x.MulAdd(archsimd.LoadFloat32x16(&c16.log2e), archsimd.LoadFloat32x16(&c16.magic)).Sub(archsimd.LoadFloat32x16(&c16.magic))
	r := n.MulAdd(archsimd.LoadFloat32x16(&c16.ln2Hi), x)
	r = n.MulAdd(archsimd.LoadFloat32x16(&c16.ln2Lo), r)
	p := r.MulAdd(archsimd.LoadFloat32x16(&c16.exp4), archsimd.LoadFloat32x16(&c16.exp3))
	p = p.MulAdd(r, archsimd.LoadFloat32x16(&c16.exp2))
	p = p.MulAdd(r, archsimd.LoadFloat32x16(&c16.exp1))
	p = p.MulAdd(r, archsimd.LoadFloat32x16(&c16.exp0))
	p = p.MulAdd(r.Mul(r), r).Add(archsimd.LoadFloat32x16(&c16.one))
	y := n.ConvertToInt32().ShiftAllLeft(23).Add(p.AsInt32x16()).AsFloat32x16()
	y = archsimd.LoadFloat32x16(&c16.inf).Merge(y, x.Greater(archsimd.LoadFloat32x16(&c16.maxExp)))
	return zero16().Merge(y, x.Less(archsimd.LoadFloat32x16(&c16.minExp)))
}

// vsigmoid16 is s = 1 / (1 + e^-x).
func vsigmoid16(x v16) v16 {
	return archsimd.LoadFloat32x16(&c16.one).Div(vexp16(zero16().Sub(x)).Add(archsimd.LoadFloat32x16(&c16.one)))
}

// vlogit16 is s = sigmoid(x) and 1 - s from e = e^-x. Above 0 the latter is e s, since
// subtracting from 1 would cancel; e s below 0 could be infinity times 0.
func vlogit16(x, e v16) (s, rest v16) {
	one := archsimd.LoadFloat32x16(&c16.one)
	s = one.Div(e.Add(one))
	return s, e.Mul(s).Merge(one.Sub(s), x.Greater(zero16()))
}

// vtanh16 is an odd polynomial near 0, elsewhere 1 - 2 / (e^2|x| + 1) with the sign of x.
func vtanh16(x v16) v16 {
	a := x.Max(zero16().Sub(x))
	big := archsimd.LoadFloat32x16(&c16.one).Sub(archsimd.LoadFloat32x16(&c16.two).Div(vexp16(a.Add(a)).Add(archsimd.LoadFloat32x16(&c16.one))))
	big = zero16().Sub(big).Merge(big, x.Less(zero16()))
	u := x.Mul(x)
	p := u.MulAdd(archsimd.LoadFloat32x16(&c16.tanh4), archsimd.LoadFloat32x16(&c16.tanh3))
	p = p.MulAdd(u, archsimd.LoadFloat32x16(&c16.tanh2))
	p = p.MulAdd(u, archsimd.LoadFloat32x16(&c16.tanh1))
	p = p.MulAdd(u, archsimd.LoadFloat32x16(&c16.tanh0))
	return p.MulAdd(u.Mul(x), x).Merge(big, a.Less(archsimd.LoadFloat32x16(&c16.tanhSmall)))
}

// vgauss16 is the normal distribution function of x, and its density: with z = |x| / sqrt 2,
// erfc(z)/2 below 0 and 1 - erfc(z)/2 above. The rounding error of z^2 is corrected, since
// e^(-z^2) would multiply it by z^2.
func vgauss16(x v16) (cdf, pdf v16) {
	a := x.Max(zero16().Sub(x)).Min(archsimd.LoadFloat32x16(&c16.fourteen))
	h := a.Mul(a).Mul(archsimd.LoadFloat32x16(&c16.half))
	e := vexp16(zero16().Sub(h))
	// h - a^2/2 in one rounding.
	low := a.Mul(archsimd.LoadFloat32x16(&c16.minusHalf)).MulAdd(a, h)
	e = e.MulAdd(low, e)
	z := a.Mul(archsimd.LoadFloat32x16(&c16.invSqrt2))
	t := archsimd.LoadFloat32x16(&c16.one).Div(z.MulAdd(archsimd.LoadFloat32x16(&c16.erfcT), archsimd.LoadFloat32x16(&c16.one)))
	p := t.MulAdd(archsimd.LoadFloat32x16(&c16.erfc10), archsimd.LoadFloat32x16(&c16.erfc9))
	p = p.MulAdd(t, archsimd.LoadFloat32x16(&c16.erfc8))
	p = p.MulAdd(t, archsimd.LoadFloat32x16(&c16.erfc7))
	p = p.MulAdd(t, archsimd.LoadFloat32x16(&c16.erfc6))
	p = p.MulAdd(t, archsimd.LoadFloat32x16(&c16.erfc5))
	p = p.MulAdd(t, archsimd.LoadFloat32x16(&c16.erfc4))
	p = p.MulAdd(t, archsimd.LoadFloat32x16(&c16.erfc3))
	p = p.MulAdd(t, archsimd.LoadFloat32x16(&c16.erfc2))
	p = p.MulAdd(t, archsimd.LoadFloat32x16(&c16.erfc1))
	p = p.MulAdd(t, archsimd.LoadFloat32x16(&c16.erfc0))
	half := p.Mul(t).Mul(e).Mul(archsimd.LoadFloat32x16(&c16.half))
	return half.Merge(archsimd.LoadFloat32x16(&c16.one).Sub(half), x.Less(zero16())), e.Mul(archsimd.LoadFloat32x16(&c16.invSqrt2Pi))
}

func exp16(dst, a []float32) {
	a = a[:len(dst)]
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		put16(dst, i, vexp16(get16(a, i)))
	}
	if i < len(dst) {
		vexp16(end16(a[i:])).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func expSub16(dst, a []float32, m float32) float32 {
	a = a[:len(dst)]
	c := all16(m)
	var sum v16
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		e := vexp16(get16(a, i).Sub(c))
		put16(dst, i, e)
		sum = sum.Add(e)
	}
	if i < len(dst) {
		vexp16(end16(a[i:]).Sub(c)).StoreSlicePart(dst[i:])
		sum = sum.Add(end16(dst[i:]))
	}
	var s arr16
	sum.Store(&s)
	archsimd.ClearAVXUpperBits()
	for n := lanes16 / 2; n > 0; n /= 2 {
		for i := range n {
			s[i] += s[i+n]
		}
	}
	return s[0]
}

func sumExp16(a []float32, m float32) float64 {
	c := all16(m)
	var lo, hi d16
	i := 0
	for ; i+lanes16 <= len(a); i += lanes16 {
		x, y := wide16(vexp16(get16(a, i).Sub(c)))
		lo, hi = lo.Add(x), hi.Add(y)
	}
	if i < len(a) {
		var buf arr16
		vexp16(end16(a[i:]).Sub(c)).StoreSlicePart(buf[:len(a)-i])
		x, y := wide16(get16(buf[:], 0))
		lo, hi = lo.Add(x), hi.Add(y)
	}
	return total16(lo, hi)
}
