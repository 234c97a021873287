//go:build goexperiment.simd && amd64 && !race

package vec

import (
	"simd/archsimd"
	"unsafe"
)

// AVX2 cannot narrow to 16 bits, so that this file has no generated twin.

func half16(s []uint16, i int) archsimd.Uint16x16 {
	return archsimd.LoadUint16x16((*[16]uint16)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s)), i*2)))
}

func putHalf16(s []uint16, i int, x archsimd.Uint16x16) {
	x.Store((*[16]uint16)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s)), i*2)))
}

// join16 is the masters of 16 pairs of halves.
func join16(hi, lo archsimd.Uint16x16) v16 {
	return hi.ExtendToUint32().ShiftAllLeft(16).Add(lo.AsInt16x16().ExtendToInt32().AsUint32x16()).AsFloat32x16()
}

// split16 is the halves of 16 masters. The shift is an arithmetic one, whose upper bits go
// anyway: the compiler loads the count of a logical one by an old instruction, and mixing
// those with 512-bit ones costs hundreds of cycles.
func split16(x v16) (hi, lo archsimd.Uint16x16) {
	b := x.AsUint32x16()
	return b.Add(archsimd.BroadcastUint32x16(1 << 15)).AsInt32x16().ShiftAllRight(16).TruncateToInt16().AsUint16x16(), b.TruncateToUint16()
}

func adamwSplit16(hi, lo []uint16, g, m, v []float32, k *AdamW) {
	n := len(hi)
	lo, g, m, v = lo[:n], g[:n], m[:n], v[:n]
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
		h, l := split16(step.MulAdd(q, decay.Mul(join16(half16(hi, i), half16(lo, i)))))
		putHalf16(hi, i, h)
		putHalf16(lo, i, l)
	}
	if i < n {
		x := end16(g[i:]).Mul(clip)
		mi := o1.MulAdd(x, b1.Mul(end16(m[i:])))
		vi := o2.Mul(x).MulAdd(x, b2.Mul(end16(v[i:])))
		mi.StoreSlicePart(m[i:])
		vi.StoreSlicePart(v[i:])
		q := mi.Div(vi.Sqrt().MulAdd(bias, eps))
		p := join16(archsimd.LoadUint16x16SlicePart(hi[i:]), archsimd.LoadUint16x16SlicePart(lo[i:]))
		h, l := split16(step.MulAdd(q, decay.Mul(p)))
		h.StoreSlicePart(hi[i:])
		l.StoreSlicePart(lo[i:])
	}
	archsimd.ClearAVXUpperBits()
}

// adamwSplit8 joins and splits one by one.
func adamwSplit8(hi, lo []uint16, g, m, v []float32, k *AdamW) {
	adamwSplit(hi, lo, g, m, v, k, adamw8)
}
