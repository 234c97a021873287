//go:build goexperiment.simd && amd64 && !race

package vec

import (
	"math"
	"simd/archsimd"
)

// weight16 is w, or a vector of ones that is read again and again.
func weight16(w []float32) (s []float32, step int) {
	if w == nil {
		return c16.one[:], 0
	}
	return w, 1
}

func normApply16(dst, a []float32, mean, inv float32, w, b []float32) {
	a = a[:len(dst)]
	w, sw := weight16(w)
	b, sb := addend16(b)
	m, f := all16(mean), all16(inv)
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		put16(dst, i, get16(a, i).Sub(m).Mul(f).MulAdd(get16(w, i*sw), get16(b, i*sb)))
	}
	if i < len(dst) {
		end16(a[i:]).Sub(m).Mul(f).MulAdd(end16(w[i*sw:]), end16(b[i*sb:])).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func normBackward16(dst, add, dy, a, w []float32, mean, inv, c1, c2 float32) {
	dy, a = dy[:len(dst)], a[:len(dst)]
	w, sw := weight16(w)
	add, step := addend16(add)
	m, f, k1, k2 := all16(mean), all16(inv), all16(c1), all16(-c2)
	i := 0
	for ; i+lanes16 <= len(dst); i += lanes16 {
		g := get16(dy, i).Mul(get16(w, i*sw)).Sub(k1)
		x := get16(a, i).Sub(m).Mul(f)
		put16(dst, i, x.MulAdd(k2, g).MulAdd(f, get16(add, i*step)))
	}
	if i < len(dst) {
		g := end16(dy[i:]).Mul(end16(w[i*sw:])).Sub(k1)
		x := end16(a[i:]).Sub(m).Mul(f)
		x.MulAdd(k2, g).MulAdd(f, end16(add[i*step:])).StoreSlicePart(dst[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func normWeight16(dw, db, dy, a []float32, mean, inv float32) {
	n := len(dw)
	dy, a = dy[:n], a[:n]
	m, f := all16(mean), all16(inv)
	i := 0
	for ; i+lanes16 <= n; i += lanes16 {
		put16(dw, i, get16(dy, i).MulAdd(get16(a, i).Sub(m).Mul(f), get16(dw, i)))
	}
	if i < n {
		end16(dy[i:]).MulAdd(end16(a[i:]).Sub(m).Mul(f), end16(dw[i:])).StoreSlicePart(dw[i:])
	}
	if db != nil {
		add16(db[:n], db, dy)
	}
	archsimd.ClearAVXUpperBits()
}

func rotateHalf16(dst, add, a, cos, sin []float32) {
	n := len(cos)
	sin = sin[:n]
	a0, a1, d0, d1 := a[:n], a[n:2*n], dst[:n], dst[n:2*n]
	var add0, add1 []float32
	if add != nil {
		add0, add1 = add[:n], add[n:2*n]
	}
	add0, step := addend16(add0)
	add1, _ = addend16(add1)
	i := 0
	for ; i+lanes16 <= n; i += lanes16 {
		x, y, c, s := get16(a0, i), get16(a1, i), get16(cos, i), get16(sin, i)
		p := x.MulAdd(c, zero16().Sub(y.Mul(s)))
		q := y.MulAdd(c, x.Mul(s))
		p, q = p.Add(get16(add0, i*step)), q.Add(get16(add1, i*step))
		put16(d0, i, p)
		put16(d1, i, q)
	}
	if i < n {
		x, y, c, s := end16(a0[i:]), end16(a1[i:]), end16(cos[i:]), end16(sin[i:])
		p := x.MulAdd(c, zero16().Sub(y.Mul(s)))
		q := y.MulAdd(c, x.Mul(s))
		p, q = p.Add(end16(add0[i*step:])), q.Add(end16(add1[i*step:]))
		p.StoreSlicePart(d0[i:])
		q.StoreSlicePart(d1[i:])
	}
	archsimd.ClearAVXUpperBits()
}

func softmaxColumns16(s []float32, ld, rows int, m, l, alpha []float32, scale float32) {
	f, inf := all16(scale), all16(float32(math.Inf(-1)))
	for c := 0; c+lanes16 <= len(m); c += lanes16 {
		was := get16(m, c)
		top := was
		for j := range rows {
			top = get16(s, j*ld+c).Mul(f).Max(top)
		}
		put16(m, c, top)
		// Nothing visible yet: subtract 0, since -Inf - -Inf is not a number.
		base := zero16().Merge(top, top.Equal(inf))
		al := vexp16(was.Sub(base))
		put16(alpha, c, al)
		sum := get16(l, c).Mul(al)
		neg := zero16().Sub(base)
		for j := range rows {
			p := vexp16(get16(s, j*ld+c).MulAdd(f, neg))
			put16(s, j*ld+c, p)
			sum = sum.Add(p)
		}
		put16(l, c, sum)
	}
	archsimd.ClearAVXUpperBits()
}

func softmaxGrad16(p, ds []float32, scale, lse, delta, cap float32) {
	f, nl, de := all16(scale), all16(-lse), all16(delta)
	if cap > 0 {
		c, fi, inv := all16(cap), all16(scale/cap), archsimd.LoadFloat32x16(&c16.one)
		for i := 0; i+lanes16 <= len(p); i += lanes16 {
			t := vtanh16(get16(p, i).Mul(fi))
			e := vexp16(t.MulAdd(c, nl))
			put16(p, i, e)
			bend := inv.Sub(t).Mul(inv.Add(t))
			put16(ds, i, e.Mul(get16(ds, i).Sub(de)).Mul(f).Mul(bend))
		}
		archsimd.ClearAVXUpperBits()
		return
	}
	for i := 0; i+lanes16 <= len(p); i += lanes16 {
		e := vexp16(get16(p, i).MulAdd(f, nl))
		put16(p, i, e)
		put16(ds, i, e.Mul(get16(ds, i).Sub(de)).Mul(f))
	}
	archsimd.ClearAVXUpperBits()
}

func adamw16(p, g, m, v []float32, k *AdamW) {
	n := len(p)
	g, m, v = g[:n], m[:n], v[:n]
	clip, b1, o1, b2, o2 := all16(k.Clip), all16(k.Beta1), all16(k.OneMinus1), all16(k.Beta2), all16(k.OneMinus2)
	decay, step, bias, eps := all16(k.Decay), all16(-k.Step), all16(k.InvSqrtBias2), all16(k.Eps)
	i := 0
	for ; i+lanes16 <= n; i += lanes16 {
		x := get16(g, i).Mul(clip)
		mi := o1.MulAdd(x, b1.Mul(get16(m, i)))
		vi := o2.Mul(x).MulAdd(x, b2.Mul(get16(v, i)))
		put16(m, i, mi)
		put16(v, i, vi)
		q := mi.Div(vi.Sqrt().MulAdd(bias, eps))
		put16(p, i, step.MulAdd(q, decay.Mul(get16(p, i))))
	}
	if i < n {
		x := end16(g[i:]).Mul(clip)
		mi := o1.MulAdd(x, b1.Mul(end16(m[i:])))
		vi := o2.Mul(x).MulAdd(x, b2.Mul(end16(v[i:])))
		mi.StoreSlicePart(m[i:])
		vi.StoreSlicePart(v[i:])
		q := mi.Div(vi.Sqrt().MulAdd(bias, eps))
		step.MulAdd(q, decay.Mul(end16(p[i:]))).StoreSlicePart(p[i:])
	}
	archsimd.ClearAVXUpperBits()
}
