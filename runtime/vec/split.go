package vec

import "math"

// A split master is an f32 in two halves of 16 bits: bits(x) = hi << 16 + signed lo, modulo
// 2^32. Hi is the bfloat16 nearest to x, of two equally near the one of larger magnitude.

// SplitMasters writes the halves of src; a nil lo is not wanted.
func SplitMasters(hi, lo []uint16, src []float32) {
	hi = hi[:len(src)]
	if lo == nil {
		for i, x := range src {
			hi[i] = uint16((math.Float32bits(x) + 1<<15) >> 16)
		}
		return
	}
	lo = lo[:len(src)]
	for i, x := range src {
		b := math.Float32bits(x)
		hi[i], lo[i] = uint16((b+1<<15)>>16), uint16(b)
	}
}

// JoinMasters writes the f32 of the halves; a nil lo is zeros.
func JoinMasters(dst []float32, hi, lo []uint16) {
	hi = hi[:len(dst)]
	if lo == nil {
		for i, h := range hi {
			dst[i] = math.Float32frombits(uint32(h) << 16)
		}
		return
	}
	lo = lo[:len(dst)]
	for i := range dst {
		dst[i] = math.Float32frombits(uint32(hi[i])<<16 + uint32(int32(int16(lo[i]))))
	}
}

// AdamWSplitStep is AdamWStep on split masters, in one pass: the same bits as on f32 ones.
func AdamWSplitStep(hi, lo []uint16, g, m, v []float32, k *AdamW) { fn.adamwSplit(hi, lo, g, m, v, k) }

// splitBlock is the masters that are joined at once; they stay in the first-level cache.
const splitBlock = 1024

// adamwSplit joins, steps and splits block by block, with the step of an implementation.
func adamwSplit(hi, lo []uint16, g, m, v []float32, k *AdamW, step func(p, g, m, v []float32, k *AdamW)) {
	var block [splitBlock]float32
	for at := 0; at < len(hi); at += splitBlock {
		end := min(at+splitBlock, len(hi))
		p := block[:end-at]
		JoinMasters(p, hi[at:end], lo[at:end])
		step(p, g[at:end], m[at:end], v[at:end], k)
		SplitMasters(hi[at:end], lo[at:end], p)
	}
}
