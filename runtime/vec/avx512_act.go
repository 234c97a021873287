//go:build goexperiment.simd && amd64 && !race

package vec

import "simd/archsimd"

func sigmoid16(dst, a []float32) {
	a = a[:len(dst)]
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		put16(dst, i, vsigmoid16(get16(a, i)))
	}
	if i < len(dst) {
		vsigmoid16(end16(a[i:])).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func vdSigmoid16(x, e v16) v16 {
	s, rest := vlogit16(x, e)
	return s.Mul(rest)
}

func dSigmoid16(dst, add, dy, a []float32) {
	dy, a = dy[:len(dst)], a[:len(dst)]
	add, step := addend16(add)
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		x := get16(a, i)
		d := vdSigmoid16(x, vexp16(zero16().Sub(x)))
		put16(dst, i, get16(dy, i).MulAdd(d, get16(add, i*step)))
	}
	if i < len(dst) {
		x := end16(a[i:])
		d := vdSigmoid16(x, vexp16(zero16().Sub(x)))
		end16(dy[i:]).MulAdd(d, end16(add[i*step:])).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func silu16(dst, a []float32) {
	a = a[:len(dst)]
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		x := get16(a, i)
		put16(dst, i, x.Mul(vsigmoid16(x)))
	}
	if i < len(dst) {
		x := end16(a[i:])
		x.Mul(vsigmoid16(x)).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

// vdSilu16 is s (1 + x (1 - s)), e = e^-x; s is returned too.
func vdSilu16(x, e v16) (d, s v16) {
	s, rest := vlogit16(x, e)
	return s.Mul(x.MulAdd(rest, archsimd.LoadFloat32x16(&c16.one))), s
}

func dSilu16(dst, add, dy, a []float32) {
	dy, a = dy[:len(dst)], a[:len(dst)]
	add, step := addend16(add)
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		x := get16(a, i)
		d, _ := vdSilu16(x, vexp16(zero16().Sub(x)))
		put16(dst, i, get16(dy, i).MulAdd(d, get16(add, i*step)))
	}
	if i < len(dst) {
		x := end16(a[i:])
		d, _ := vdSilu16(x, vexp16(zero16().Sub(x)))
		end16(dy[i:]).MulAdd(d, end16(add[i*step:])).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func tanh16(dst, a []float32) {
	a = a[:len(dst)]
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		put16(dst, i, vtanh16(get16(a, i)))
	}
	if i < len(dst) {
		vtanh16(end16(a[i:])).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

// vdTanh16 is 1 - tanh^2 as (1 - t)(1 + t).
func vdTanh16(x v16) v16 {
	t := vtanh16(x)
	return archsimd.LoadFloat32x16(&c16.one).Sub(t).Mul(archsimd.LoadFloat32x16(&c16.one).Add(t))
}

func dTanh16(dst, add, dy, a []float32) {
	dy, a = dy[:len(dst)], a[:len(dst)]
	add, step := addend16(add)
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		put16(dst, i, get16(dy, i).MulAdd(vdTanh16(get16(a, i)), get16(add, i*step)))
	}
	if i < len(dst) {
		end16(dy[i:]).MulAdd(vdTanh16(end16(a[i:])), end16(add[i*step:])).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

// vgelu16 is twice the inner cubic of the tanh form: (1 + tanh g)/2 = sigmoid(2g).
func vgelu16(x v16) v16 {
	return x.Mul(x).MulAdd(archsimd.LoadFloat32x16(&c16.geluTwiceCubic), archsimd.LoadFloat32x16(&c16.geluTwice)).Mul(x)
}

func geluTanh16(dst, a []float32) {
	a = a[:len(dst)]
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		x := get16(a, i)
		put16(dst, i, x.Mul(vsigmoid16(vgelu16(x))))
	}
	if i < len(dst) {
		x := end16(a[i:])
		x.Mul(vsigmoid16(vgelu16(x))).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

// vdGelu16 is s + x s (1 - s) (2g)', with e = e^-2g. The last factors are taken as 0 where s
// is 0 or 1, since (2g)' may be infinite there.
func vdGelu16(x, twice, e v16) v16 {
	s, rest := vlogit16(twice, e)
	inner := x.Mul(x).MulAdd(archsimd.LoadFloat32x16(&c16.geluBend), archsimd.LoadFloat32x16(&c16.geluTwice))
	rest = rest.Mul(s)
	return s.Add(zero16().Merge(x.Mul(inner).Mul(rest), rest.Equal(zero16())))
}

func dGeluTanh16(dst, add, dy, a []float32) {
	dy, a = dy[:len(dst)], a[:len(dst)]
	add, step := addend16(add)
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		x := get16(a, i)
		g := vgelu16(x)
		d := vdGelu16(x, g, vexp16(zero16().Sub(g)))
		put16(dst, i, get16(dy, i).MulAdd(d, get16(add, i*step)))
	}
	if i < len(dst) {
		x := end16(a[i:])
		g := vgelu16(x)
		d := vdGelu16(x, g, vexp16(zero16().Sub(g)))
		end16(dy[i:]).MulAdd(d, end16(add[i*step:])).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func geluErf16(dst, a []float32) {
	a = a[:len(dst)]
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		x := get16(a, i)
		c, _ := vgauss16(x)
		put16(dst, i, x.Mul(c))
	}
	if i < len(dst) {
		x := end16(a[i:])
		c, _ := vgauss16(x)
		x.Mul(c).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func dGeluErf16(dst, add, dy, a []float32) {
	dy, a = dy[:len(dst)], a[:len(dst)]
	add, step := addend16(add)
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		x := get16(a, i)
		c, p := vgauss16(x)
		put16(dst, i, get16(dy, i).MulAdd(x.MulAdd(p, c), get16(add, i*step)))
	}
	if i < len(dst) {
		x := end16(a[i:])
		c, p := vgauss16(x)
		end16(dy[i:]).MulAdd(x.MulAdd(p, c), end16(add[i*step:])).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

// vrelu16 is max(x, 0). It compares, because which operand a Max with NaN returns is up to
// the compiler, and a NaN has to stay one.
func vrelu16(x v16) v16 { return zero16().Merge(x, x.LessEqual(zero16())) }

func relu16(dst, a []float32) {
	a = a[:len(dst)]
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		put16(dst, i, vrelu16(get16(a, i)))
	}
	if i < len(dst) {
		vrelu16(end16(a[i:])).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func dRelu16(dst, add, dy, a []float32) {
	dy, a = dy[:len(dst)], a[:len(dst)]
	add, step := addend16(add)
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		put16(dst, i, get16(dy, i).Masked(get16(a, i).Greater(zero16())).Add(get16(add, i*step)))
	}
	if i < len(dst) {
		end16(dy[i:]).Masked(end16(a[i:]).Greater(zero16())).Add(end16(add[i*step:])).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func relu2x16(dst, a []float32) {
	a = a[:len(dst)]
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		x := vrelu16(get16(a, i))
		put16(dst, i, x.Mul(x))
	}
	if i < len(dst) {
		x := vrelu16(end16(a[i:]))
		x.Mul(x).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func dRelu2x16(dst, add, dy, a []float32) {
	dy, a = dy[:len(dst)], a[:len(dst)]
	add, step := addend16(add)
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		x := vrelu16(get16(a, i))
		put16(dst, i, get16(dy, i).MulAdd(x.Add(x), get16(add, i*step)))
	}
	if i < len(dst) {
		x := vrelu16(end16(a[i:]))
		end16(dy[i:]).MulAdd(x.Add(x), end16(add[i*step:])).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func swiglu16(dst, gate, up []float32) {
	gate, up = gate[:len(dst)], up[:len(dst)]
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		g := get16(gate, i)
		put16(dst, i, g.Mul(vsigmoid16(g)).Mul(get16(up, i)))
	}
	if i < len(dst) {
		g := end16(gate[i:])
		g.Mul(vsigmoid16(g)).Mul(end16(up[i:])).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func swigluBackward16(dgate, dup, addGate, addUp, dy, gate, up []float32) {
	n := len(dgate)
	dup, dy, gate, up = dup[:n], dy[:n], gate[:n], up[:n]
	addGate, sg := addend16(addGate)
	addUp, su := addend16(addUp)
	i := 0
	for ; i+lanes16 <= n; i += lanes16 {
		g, u, y := get16(gate, i), get16(up, i), get16(dy, i)
		d, s := vdSilu16(g, vexp16(zero16().Sub(g)))
		ag, au := get16(addGate, i*sg), get16(addUp, i*su)
		put16(dgate, i, y.Mul(u).MulAdd(d, ag))
		put16(dup, i, y.MulAdd(g.Mul(s), au))
	}
	if i < n {
		g, u, y := end16(gate[i:]), end16(up[i:]), end16(dy[i:])
		d, s := vdSilu16(g, vexp16(zero16().Sub(g)))
		ag, au := end16(addGate[i*sg:]), end16(addUp[i*su:])
		y.Mul(u).MulAdd(d, ag).StoreSlicePart(dgate[i:])
		y.MulAdd(g.Mul(s), au).StoreSlicePart(dup[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func softcap16(dst, a []float32, cap float32) {
	a = a[:len(dst)]
	c, inv := all16(cap), all16(1/cap)
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		put16(dst, i, vtanh16(get16(a, i).Mul(inv)).Mul(c))
	}
	if i < len(dst) {
		vtanh16(end16(a[i:]).Mul(inv)).Mul(c).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func softcapBackward16(dst, add, dy, a []float32, cap float32) {
	dy, a = dy[:len(dst)], a[:len(dst)]
	add, step := addend16(add)
	inv := all16(1 / cap)
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		put16(dst, i, get16(dy, i).MulAdd(vdTanh16(get16(a, i).Mul(inv)), get16(add, i*step)))
	}
	if i < len(dst) {
		end16(dy[i:]).MulAdd(vdTanh16(end16(a[i:]).Mul(inv)), end16(add[i*step:])).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}
