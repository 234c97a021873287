//go:build cuda

package cuda

import "github.com/megatrain/mtc/runtime/device"

// cuBLASLt takes its fast kernels only where the dims along which operands are contiguous are
// multiples of 8, not only the distance of their rows: a vocabulary of 50,257 costs six sevenths of
// the rate even where rows begin at multiples of 16 bytes. Such a product is cut in two: up to the
// last multiple of 8, and the few columns, rows or terms that are left.

const (
	partUnit  = 8    // elements
	partLeast = 1024 // smaller products are left whole
)

// parts cuts a product; n is how many there are, to be run in order. It allocates nothing.
func (d *Device) parts(m *device.Matmul) (list [2]device.Matmul, n int) {
	list[0] = *m
	if d.opt.F32 || m.Epilogue != device.NoEpilogue {
		return list, 1
	}
	lda, ldd := m.LDA, m.LDD
	if lda == 0 {
		lda = m.K
		if m.TransA {
			lda = m.M
		}
	}
	if ldd == 0 {
		ldd = m.N
	}
	odd := func(dim int64) bool { return dim%partUnit != 0 && dim >= partLeast }
	const act = 2
	out := int64(act)
	if m.DD == device.GradDtype {
		out = 4
	}
	var a, b *device.Matmul
	switch {
	case lda%partUnit != 0 || ldd%partUnit != 0:
		return list, 1
	case odd(m.N) && m.TransB: // D [M, N], B stored [N, K]
		a, b = &list[0], &list[1]
		*b = *m
		at := m.N - m.N%partUnit
		a.N, b.N = at, m.N-at
		b.B, b.Bias = m.B.At(at*m.K*act), m.Bias.At(at*out)
		b.D, b.C = m.D.At(at*out), m.C.At(at*out)
	case odd(m.K) && !m.TransA && !m.TransB: // A [M, K], B [K, N]
		// The few terms come first: the sum so far is rounded once more, and it should be small.
		a, b = &list[1], &list[0]
		*a = *m
		at := m.K - m.K%partUnit
		a.K, b.K = at, m.K-at
		b.A, b.B = m.A.At(at*act), m.B.At(at*m.N*act)
		a.C, a.Bias = m.D, device.Ptr{}
	case odd(m.M) && m.TransA: // A stored [K, M]
		a, b = &list[0], &list[1]
		*b = *m
		at := m.M - m.M%partUnit
		a.M, b.M = at, m.M-at
		b.A = m.A.At(at * act)
		b.D, b.C = m.D.At(at*ldd*out), m.C.At(at*ldd*out)
	default:
		return list, 1
	}
	a.LDA, a.LDD, b.LDA, b.LDD = lda, ldd, lda, ldd
	return list, 2
}
