package vec

import "math"

// plain is the implementation in portable Go.
var plain = table{
	add: func(dst, a, b []float32) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = a[i] + b[i]
		}
	},
	sub: func(dst, a, b []float32) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = a[i] - b[i]
		}
	},
	mul: func(dst, a, b []float32) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = a[i] * b[i]
		}
	},
	fma: func(dst, a, b, c []float32) {
		a, b, c = a[:len(dst)], b[:len(dst)], c[:len(dst)]
		for i := range dst {
			dst[i] = fma(a[i], b[i], c[i])
		}
	},
	mulScale: func(dst, a, b []float32, s float32) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			t := a[i] * s
			dst[i] = t * b[i]
		}
	},
	scale: func(dst, a []float32, s float32) {
		a = a[:len(dst)]
		for i := range dst {
			dst[i] = a[i] * s
		}
	},
	axpy: func(dst, a []float32, s float32, b []float32) {
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = fma(s, b[i], a[i])
		}
	},
	dot: func(a, b, _ []float32) float64 {
		b = b[:len(a)]
		var s float64
		for i := range a {
			s += float64(a[i]) * float64(b[i])
		}
		return s
	},
	dot3: func(a, b, c []float32) float64 {
		b, c = b[:len(a)], c[:len(a)]
		var s float64
		for i := range a {
			ab := a[i] * b[i]
			s += float64(ab) * float64(c[i])
		}
		return s
	},
	sum: func(a []float32) float64 {
		var s float64
		for _, x := range a {
			s += float64(x)
		}
		return s
	},
	sumSq: func(a []float32) float64 {
		var s float64
		for _, x := range a {
			s += float64(x) * float64(x)
		}
		return s
	},
	addSquares: func(acc []float64, a []float32) {
		for i, x := range a {
			acc[i] += float64(float64(x) * float64(x))
		}
	},
	sumSqDev: func(a []float32, mean float32) float64 {
		var s float64
		for _, x := range a {
			d := float64(x - mean)
			s += d * d
		}
		return s
	},
	max: func(a []float32) float32 {
		m := float32(math.Inf(-1))
		for _, x := range a {
			if x > m {
				m = x
			}
		}
		return m
	},
	exp: func(dst, a []float32) {
		a = a[:len(dst)]
		for i := range dst {
			dst[i] = exp(a[i])
		}
	},
	expSub: func(dst, a []float32, m float32) float32 {
		a = a[:len(dst)]
		var lane [16]float32
		for i := range dst {
			e := exp(a[i] - m)
			dst[i] = e
			lane[i&15] += e
		}
		return sumLanes(&lane)
	},
	sumExp: func(a []float32, m float32) float64 {
		var s float64
		for _, x := range a {
			s += float64(exp(x - m))
		}
		return s
	},
	unary: [numUnary]func(dst, a []float32){
		each(sigmoid), each(silu), each(tanh), each(geluTanh), each(geluErf), each(relu), each(relu2),
	},
	backward: [numUnary]func(dst, add, dy, a []float32){
		eachD(dSigmoid), eachD(dSilu), eachD(dTanh), eachD(dGeluTanh), eachD(dGeluErf), eachD(dRelu), eachD(dRelu2),
	},
	swiglu: func(dst, gate, up []float32) {
		gate, up = gate[:len(dst)], up[:len(dst)]
		for i := range dst {
			dst[i] = silu(gate[i]) * up[i]
		}
	},
	swigluBackward: func(dgate, dup, addGate, addUp, dy, gate, up []float32) {
		for i := range dgate {
			g, u, d := gate[i], up[i], dy[i]
			dg, du := d*u*dSilu(g), d*silu(g)
			if addGate != nil {
				dg = addGate[i] + dg
			}
			if addUp != nil {
				du = addUp[i] + du
			}
			dgate[i], dup[i] = dg, du
		}
	},
	softcap: func(dst, a []float32, cap float32) {
		a = a[:len(dst)]
		inv := 1 / cap
		for i := range dst {
			dst[i] = cap * tanh(a[i]*inv)
		}
	},
	softcapBackward: func(dst, add, dy, a []float32, cap float32) {
		inv := 1 / cap
		for i := range dst {
			d := dy[i] * dTanh(a[i]*inv)
			if add != nil {
				d = add[i] + d
			}
			dst[i] = d
		}
	},
	normApply: func(dst, a []float32, mean, inv float32, w, b []float32) {
		a = a[:len(dst)]
		for i := range dst {
			x := (a[i] - mean) * inv
			switch {
			case w != nil && b != nil:
				x = fma(x, w[i], b[i])
			case w != nil:
				x *= w[i]
			case b != nil:
				x += b[i]
			}
			dst[i] = x
		}
	},
	normBackward: func(dst, add, dy, a, w []float32, mean, inv, c1, c2 float32) {
		for i := range dst {
			g := dy[i]
			if w != nil {
				g *= w[i]
			}
			x := (a[i] - mean) * inv
			d := fma(-x, c2, g-c1) * inv
			if add != nil {
				d = add[i] + d
			}
			dst[i] = d
		}
	},
	normWeight: func(dw, db, dy, a []float32, mean, inv float32) {
		for i := range dw {
			x := (a[i] - mean) * inv
			dw[i] = fma(dy[i], x, dw[i])
			if db != nil {
				db[i] += dy[i]
			}
		}
	},
	rotateHalf: func(dst, add, a, cos, sin []float32) {
		n := len(cos)
		for i := range n {
			x, y, c, s := a[i], a[i+n], cos[i], sin[i]
			p, q := fma(x, c, -(y*s)), fma(y, c, x*s)
			if add != nil {
				p, q = add[i]+p, add[i+n]+q
			}
			dst[i], dst[i+n] = p, q
		}
	},
	rotatePairs: rotatePairs,
	softmaxColumns: func(s []float32, ld, rows int, m, l, alpha []float32, scale float32) {
		for q := range m {
			top := m[q]
			for j := range rows {
				top = max(top, s[j*ld+q]*scale)
			}
			// Nothing visible yet: subtract 0, since -Inf - -Inf is not a number.
			base := top
			if math.IsInf(float64(top), -1) {
				base = 0
			}
			alpha[q] = exp(m[q] - base)
			sum := l[q] * alpha[q]
			for j := range rows {
				p := exp(fma(s[j*ld+q], scale, -base))
				s[j*ld+q] = p
				sum += p
			}
			m[q], l[q] = top, sum
		}
	},
	softmaxGrad: func(p, ds []float32, scale, lse, delta, cap float32) {
		for i, s := range p {
			e, bend := float32(0), float32(1)
			if cap > 0 {
				t := tanh(s * (scale / cap))
				e, bend = exp(fma(t, cap, -lse)), (1-t)*(1+t)
			} else {
				e = exp(fma(s, scale, -lse))
			}
			p[i] = e
			ds[i] = e * (ds[i] - delta) * scale * bend
		}
	},
	adamw: adamwPlain,
	adamwSplit: func(hi, lo []uint16, g, m, v []float32, k *AdamW) {
		adamwSplit(hi, lo, g, m, v, k, adamwPlain)
	},
}

func adamwPlain(p, g, m, v []float32, k *AdamW) {
	g, m, v = g[:len(p)], m[:len(p)], v[:len(p)]
	for i := range p {
		gi := g[i] * k.Clip
		mi := fma(k.OneMinus1, gi, k.Beta1*m[i])
		vi := fma(k.OneMinus2*gi, gi, k.Beta2*v[i])
		m[i], v[i] = mi, vi
		den := fma(float32(math.Sqrt(float64(vi))), k.InvSqrtBias2, k.Eps)
		p[i] = fma(-k.Step, mi/den, k.Decay*p[i])
	}
}

// sumLanes adds 16 partial sums as a tree, the order of the vector implementations.
func sumLanes(l *[16]float32) float32 {
	for n := 8; n > 0; n /= 2 {
		for i := range n {
			l[i] += l[i+n]
		}
	}
	return l[0]
}

// fma is a*b + c. The product of two float32 is exact in float64; the sum is rounded twice,
// which differs from a fused operation in rare halfway cases only.
func fma(a, b, c float32) float32 { return float32(float64(a)*float64(b) + float64(c)) }

func each(f func(float32) float32) func(dst, a []float32) {
	return func(dst, a []float32) {
		a = a[:len(dst)]
		for i := range dst {
			dst[i] = f(a[i])
		}
	}
}

func eachD(f func(float32) float32) func(dst, add, dy, a []float32) {
	return func(dst, add, dy, a []float32) {
		dy, a = dy[:len(dst)], a[:len(dst)]
		if add == nil {
			for i := range dst {
				dst[i] = dy[i] * f(a[i])
			}
			return
		}
		for i := range dst {
			dst[i] = add[i] + dy[i]*f(a[i])
		}
	}
}

// Scalar functions and derivatives, evaluated in float64 and rounded once.

// minExp is ln of the smallest normal float32: below it exp is 0.
const minExp = -87.33654475

func exp(x float32) float32 {
	if x < minExp {
		return 0
	}
	return float32(math.Exp(float64(x)))
}

func sig64(x float64) float64     { return 1 / (1 + math.Exp(-x)) }
func sigmoid(x float32) float32   { return float32(sig64(float64(x))) }
func tanh(x float32) float32      { return float32(math.Tanh(float64(x))) }
func silu(x float32) float32      { return float32(float64(x) * sig64(float64(x))) }
func relu(x float32) float32      { return max(x, 0) }
func relu2(x float32) float32     { y := max(x, 0); return y * y }
func dRelu2(x float32) float32    { return 2 * max(x, 0) }
func gaussCDF(x float64) float64  { return 0.5 * math.Erfc(-x/math.Sqrt2) }
func geluErf(x float32) float32   { return float32(float64(x) * gaussCDF(float64(x))) }
func geluInner(x float64) float64 { return geluScale * (x + geluCubic*x*x*x) }
func geluTanh(v float32) float32  { x := float64(v); return float32(x * sig64(2*geluInner(x))) }

func dRelu(x float32) float32 {
	if x > 0 {
		return 1
	}
	return 0
}

func dSigmoid(x float32) float32 {
	return float32(sig64(float64(x)) * sig64(-float64(x)))
}

func dSilu(v float32) float32 {
	x := float64(v)
	s := sig64(x)
	return float32(s * (1 + x*(1-s)))
}

func dTanh(x float32) float32 {
	t := math.Tanh(float64(x))
	return float32(1 - t*t)
}

// Constants of the tanh form of GELU: sqrt(2/pi) and the cubic term.
const (
	geluScale = 0.7978845608028654
	geluCubic = 0.044715
)

func dGeluTanh(v float32) float32 {
	x := float64(v)
	s := sig64(2 * geluInner(x))
	return float32(s + 2*x*s*(1-s)*geluScale*(1+3*geluCubic*x*x))
}

func dGeluErf(v float32) float32 {
	x := float64(v)
	return float32(gaussCDF(x) + x*math.Exp(-x*x/2)*0.3989422804014327)
}

// rotatePairs serves all implementations.
func rotatePairs(dst, add, a, cos, sin []float32) {
	for i := range cos {
		x, y, c, s := a[2*i], a[2*i+1], cos[i], sin[i]
		p, q := fma(x, c, -(y*s)), fma(y, c, x*s)
		if add != nil {
			p, q = add[2*i]+p, add[2*i+1]+q
		}
		dst[2*i], dst[2*i+1] = p, q
	}
}
