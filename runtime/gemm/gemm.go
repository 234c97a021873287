// Package gemm multiplies float32 matrices for the linear op (y = x W^T and its two
// gradients) and, in small blocks, for attention. Matrices are row-major without gaps. Work
// is cut over CPU.Parallel. There are AVX-512 and AVX2 kernels for amd64, chosen at start-up,
// and plain Go ones for every other machine.
//
// Order of additions. The sum over k of one element of C is taken in blocks of kc terms; each
// block is summed in order of k from zero, and the blocks are added to C in order. The order
// depends on k only: not on the element's place, nor on the other dims, nor on threads. So a
// row of C has the same bits however many rows are computed with it.
//
// Blocking (after Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication,
// 2008). A micro-kernel holds a tile of mr x nr sums in registers. A block of A, as many rows
// as fit half of the second-level cache, is packed once; then each panel of nr columns of B is
// packed into the first-level cache, kc terms at a time, and used by every tile of the block.
package gemm

import (
	"sync"
	"unsafe"
)

// Parallel is the part of device.CPU that this package needs.
type Parallel interface {
	// Parallel calls body for disjoint ranges that cover [0, n).
	Parallel(n, grain int64, body func(lo, hi int64))
}

// NT is C[m,n] = add + A[m,k] B[n,k]^T + bias: the forward of a linear layer, x [m,k] by
// weight [n,k]. add [m,n] may be nil, or c itself; bias [n] may be nil.
func NT(p Parallel, m, n, k int, c, a, b, add, bias []float32) {
	run(p, &job{m: m, n: n, k: k, c: c, add: add, bias: bias, a: mat{a, k, 1}, b: mat{b, 1, k}})
}

// NN is C[m,n] = add + A[m,k] B[k,n]: the input gradient, dy [m,k] by weight [k,n] (k outputs,
// n inputs). add may be nil, or c itself.
func NN(p Parallel, m, n, k int, c, a, b, add []float32) {
	run(p, &job{m: m, n: n, k: k, c: c, add: add, a: mat{a, k, 1}, b: mat{b, n, 1}})
}

// TN is C[m,n] = add + A[k,m]^T B[k,n]: the weight gradient, dy [k,m] (k rows, m outputs) by
// x [k,n]. add may be nil, or c itself.
func TN(p Parallel, m, n, k int, c, a, b, add []float32) {
	run(p, &job{m: m, n: n, k: k, c: c, add: add, a: mat{a, 1, m}, b: mat{b, n, 1}})
}

// mat is an operand: element (i, j) is data[i*row + j*col]; row or col is 1.
type mat struct {
	data     []float32
	row, col int
}

// job is one multiplication.
type job struct {
	kernels
	m, n, k      int
	c, add, bias []float32
	a            mat // [m, k]
	b            mat // [k, n]
	mc           int // rows of a block of A, a multiple of mr
	kk           int // terms of a block of A, a multiple of kc
}

const (
	// kc is the number of terms of a block of the sum over k: with nr = 32, a panel of B is
	// 32 KiB and stays in the first-level cache beside a tile's share of A.
	kc = 256
	// blockA is the floats of a packed block of A: 1 MiB.
	blockA = 1 << 18
)

// run cuts C into row blocks and column panels. A task is one panel of one row block; tasks
// of a row block are neighbours, so that a range of them packs A once.
func run(p Parallel, j *job) {
	if j.m == 0 || j.n == 0 {
		return
	}
	j.kernels = *active
	if j.k == 0 {
		j.empty()
		return
	}
	j.shape()
	blocks := ceil(j.m, j.mc)
	panels := ceil(j.n, j.nr)
	p.Parallel(int64(blocks)*int64(panels), 1, func(lo, hi int64) {
		for lo < hi {
			i := int(lo) / panels
			from := int(lo) % panels
			to := min(panels, from+int(hi-lo))
			j.block(i*j.mc, min(j.m, (i+1)*j.mc), from*j.nr, min(j.n, to*j.nr))
			lo += int64(to - from)
		}
	})
}

func ceil(a, b int) int { return (a + b - 1) / b }

// shape chooses the block of A.
func (j *job) shape() {
	j.kk = min(ceil(j.k, kc)*kc, 4*kc)
	rows := max(j.mr, blockA/j.kk/j.mr*j.mr)
	// Equal blocks: 1030 rows in blocks of 1000 would leave a block of 30.
	n := ceil(j.m, rows)
	j.mc = ceil(ceil(j.m, n), j.mr) * j.mr
}

// empty is C = add + bias for a sum of no terms.
func (j *job) empty() {
	for i := range j.m {
		for x := range j.n {
			var s float32
			if j.add != nil {
				s = j.add[i*j.n+x]
			}
			if j.bias != nil {
				s += j.bias[x]
			}
			j.c[i*j.n+x] = s
		}
	}
}

// scratch is a worker's packed block of A, panel of B and kernel arguments.
type scratch struct {
	a, b []float32
	t    tile
}

var pool = sync.Pool{New: func() any { return new(scratch) }}

// grow returns s with n floats and some room behind, which kernels may read but do not use.
func grow(s []float32, n int) []float32 {
	if cap(s) < n+64 {
		s = make([]float32, n+64)
	}
	return s[:n]
}

// block computes rows m0 to m1 and columns n0 to n1 of C.
func (j *job) block(m0, m1, n0, n1 int) {
	j.announce(m0, m1, n0, n1)
	s := pool.Get().(*scratch)
	defer pool.Put(s)
	rows := ceil(m1-m0, j.mr) * j.mr
	s.a = grow(s.a, rows*min(j.kk, j.k))
	s.b = grow(s.b, kc*j.nr)
	first := j.start(m0, m1, n0, n1)
	for k0 := 0; k0 < j.k; k0 += j.kk {
		k1 := min(j.k, k0+j.kk)
		j.packA(s.a, m0, m1, k0, k1)
		for x := n0; x < n1; x += j.nr {
			a := s.a
			for k := k0; k < k1; k += kc {
				n := min(kc, k1-k)
				j.packB(s.b, x, k, n)
				src := first
				if k > 0 {
					src = mat{j.c, j.n, 1}
				}
				j.column(s, a, src, m0, m1, x, n)
				a = a[rows*n:]
			}
		}
	}
}

// column computes the tiles of rows m0 to m1 in the panel at column x, over the n terms that
// are packed in a and s.b.
func (j *job) column(s *scratch, a []float32, src mat, m0, m1, x, n int) {
	cols := min(j.nr, j.n-x)
	t := &s.t
	t.k, t.b = n, unsafe.Pointer(unsafe.SliceData(s.b))
	t.lda, t.ldc, t.lds = j.mr*4, j.n*4, src.row*4
	for i := m0; i < m1; i += j.mr {
		t.rows = min(j.mr, m1-i)
		t.a = unsafe.Pointer(unsafe.SliceData(a[(i-m0)*n:]))
		t.c = unsafe.Pointer(&j.c[i*j.n+x])
		t.src = unsafe.Pointer(&src.data[i*src.row+x*src.col])
		j.tile(t, cols)
	}
}

// start says what the first block of the sum is added to: add, the bias (a row for all), a
// row of zeros, or C when it holds add + bias.
func (j *job) start(m0, m1, n0, n1 int) mat {
	switch {
	case j.add == nil && j.bias == nil:
		return mat{zeros[:], 0, 0}
	case j.add == nil:
		return mat{j.bias, 0, 1}
	case j.bias == nil:
		return mat{j.add, j.n, 1}
	}
	for i := m0; i < m1; i++ {
		for x := n0; x < n1; x++ {
			j.c[i*j.n+x] = j.add[i*j.n+x] + j.bias[x]
		}
	}
	return mat{j.c, j.n, 1}
}

// packA writes rows m0 to m1, terms k0 to k1: for each kc terms, for each mr rows,
// [terms][mr].
func (j *job) packA(dst []float32, m0, m1, k0, k1 int) {
	for k := k0; k < k1; k += kc {
		n := min(kc, k1-k)
		for i := m0; i < m1; i += j.mr {
			src := j.a.data[i*j.a.row+k*j.a.col:]
			if j.a.col == 1 {
				j.transpose(dst, j.mr, src, j.a.row, n, min(j.mr, m1-i), j.mr)
			} else {
				j.copyRows(dst, j.mr, src, j.a.col, n, min(j.mr, m1-i), j.mr)
			}
			dst = dst[n*j.mr:]
		}
	}
}

// packB writes the panel at column x, terms k to k+n: [terms][nr].
func (j *job) packB(dst []float32, x, k, n int) {
	src := j.b.data[k*j.b.row+x*j.b.col:]
	cols := min(j.nr, j.n-x)
	if j.b.col == 1 {
		j.copyRows(dst, j.nr, src, j.b.row, n, cols, j.nr)
	} else {
		j.transpose(dst, j.nr, src, j.b.col, n, cols, j.nr)
	}
}
