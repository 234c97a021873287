package gemm

import "unsafe"

// Small blocks for callers that keep their operands in scratch memory (attention). They run
// on the caller's goroutine. A sum over k is taken in order from zero, whatever the place of
// the element or the size of the block.

// Slack is the floats that must be readable behind the last element of A in Block.
const Slack = 16

// Width is the number of columns of a panel: packed operands have their columns rounded up to
// it.
func Width() int { return active.nr }

// Packed is the number of floats of a packed [k,n] operand.
func Packed(k, n int) int { return ceil(n, active.nr) * active.nr * k }

// PackRows packs B[k,n], stored as k rows, ld apart, for Block.
func PackRows(dst, src []float32, ld, k, n int) {
	touch(src, ld, k, n, false)
	active.packRows(dst, src, ld, k, n, active.nr)
}

// PackCols packs B[k,n], stored as n rows of k, ld apart, for Block.
func PackCols(dst, src []float32, ld, k, n int) {
	touch(src, ld, n, k, false)
	g := active
	for x := 0; x < n; x += g.nr {
		g.transpose(dst, g.nr, src[x*ld:], ld, k, min(g.nr, n-x), g.nr)
		dst = dst[k*g.nr:]
	}
}

// Transpose writes dst[i*ldd + x] = src[x*lds + i] for i < k and x < n.
func Transpose(dst []float32, ldd int, src []float32, lds, k, n int) {
	touch(src, lds, n, k, false)
	touch(dst, ldd, k, n, true)
	g := active
	for x := 0; x < n; x += g.nr {
		w := min(g.nr, n-x)
		g.transpose(dst[x:], ldd, src[x*lds:], lds, k, w, w)
	}
}

// Tile is the scratch of Block; a zero Tile will do. One per goroutine.
type Tile struct{ t tile }

// Block is C[m,n] = A^T B, or C += A^T B with add: A is [k,m] with rows lda apart and Slack
// floats behind, B is packed, C has rows ldc apart.
func (w *Tile) Block(m, n, k int, c []float32, ldc int, add bool, a []float32, lda int, b []float32) {
	if m == 0 || n == 0 || k == 0 {
		return
	}
	touch(c, ldc, m, n, true)
	g := active
	_, _, _ = c[(m-1)*ldc+n-1], a[(k-1)*lda+m-1], b[Packed(k, n)-1]
	t := &w.t
	t.k, t.lda, t.ldc, t.lds = k, lda*4, ldc*4, 0
	if add {
		t.lds = t.ldc
	}
	for x := 0; x < n; x += g.nr {
		t.b = unsafe.Pointer(&b[x*k])
		for i := 0; i < m; i += g.mr {
			t.rows = min(g.mr, m-i)
			t.a = unsafe.Pointer(&a[i])
			t.c = unsafe.Pointer(&c[i*ldc+x])
			t.src = unsafe.Pointer(&zeros)
			if add {
				t.src = t.c
			}
			g.tile(t, min(g.nr, n-x))
		}
	}
	w.t = tile{}
}
