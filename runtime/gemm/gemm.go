// Package gemm multiplies float32 matrices for the linear op (y = x W^T and its two
// gradients) and, in small blocks, for attention. Matrices are row-major, without gaps except
// between the rows of y in the forms named Pitch. Work is cut over CPU.Parallel. There are
// AVX-512 and AVX2 kernels for amd64, chosen at start-up, and plain Go ones for every other
// machine.
//
// Order of additions. The sum over k of one element of C is taken in blocks of kc terms; each
// block is summed in order of k from zero, and the blocks are added to C in order. The order
// depends on k only: not on the element's place, nor on the other dims, nor on threads. So a
// row of C has the same bits however many rows are computed with it.
//
// Blocking (after Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication,
// 2008). A micro-kernel holds a tile of mr x nr sums in registers. A is packed in panels of mr
// rows; a strip of a few panels of nr columns of B is packed kc terms at a time. Both stay in
// the second-level cache while every tile of a block of A's rows meets every panel.
package gemm

import (
	"math"
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
	NTPitch(p, m, n, k, c, n, a, b, add, bias)
}

// NTPitch is NT into rows of C, as those of add, that lie ldc >= n floats apart.
func NTPitch(p Parallel, m, n, k int, c []float32, ldc int, a, b, add, bias []float32) {
	run(p, &job{m: m, n: n, k: k, c: c, ldc: ldc, add: add, bias: bias, a: mat{a, k, 1}, b: mat{b, 1, k}})
}

// NN is C[m,n] = add + A[m,k] B[k,n]: the input gradient, dy [m,k] by weight [k,n] (k outputs,
// n inputs). add may be nil, or c itself.
func NN(p Parallel, m, n, k int, c, a, b, add []float32) { NNPitch(p, m, n, k, c, a, k, b, add) }

// NNPitch is NN of rows of A that lie lda >= k floats apart.
func NNPitch(p Parallel, m, n, k int, c, a []float32, lda int, b, add []float32) {
	run(p, &job{m: m, n: n, k: k, c: c, ldc: n, add: add, a: mat{a, lda, 1}, b: mat{b, n, 1}})
}

// TN is C[m,n] = add + A[k,m]^T B[k,n]: the weight gradient, dy [k,m] (k rows, m outputs) by
// x [k,n]. add may be nil, or c itself.
func TN(p Parallel, m, n, k int, c, a, b, add []float32) { TNPitch(p, m, n, k, c, a, m, b, add) }

// TNPitch is TN of rows of A that lie lda >= m floats apart.
func TNPitch(p Parallel, m, n, k int, c, a []float32, lda int, b, add []float32) {
	run(p, &job{m: m, n: n, k: k, c: c, ldc: n, add: add, a: mat{a, 1, lda}, b: mat{b, n, 1}})
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
	ldc          int       // floats from one row of c to the next
	c, add, bias []float32 // rows of add lie as those of c
	a            mat       // [m, k]
	b            mat       // [k, n]
}

const (
	// kc is the number of terms of a block of the sum over k.
	kc = 384
	// blockRows is the rows of A that the panels of a strip of B meet before the next rows. With
	// nr = 32, both take 0.2 MiB of a second-level cache that others use too; tiles are as fast
	// from there as from the first level.
	blockRows = 126
	// strip is the panels of B that are packed together: rows of B are read 512 bytes at a time.
	strip = 4
	// packedA bounds the floats of A that are packed at once.
	packedA = 1 << 20
	// share is the multiplications that are worth a share of their own.
	share = 1 << 24
	// small is the multiplications up to which threads pack A for themselves.
	small = 1 << 27
)

func ceil(a, b int) int { return (a + b - 1) / b }

// run chooses between two ways to share the work, which give the same bits.
func run(p Parallel, j *job) {
	if j.m == 0 || j.n == 0 {
		return
	}
	j.kernels = *active
	switch work := j.m * j.n * j.k; {
	case j.k == 0:
		j.empty()
	case work <= small && j.m*j.k <= packedA:
		j.apart(p)
	default:
		j.together(p)
	}
}

// shares is the number of pieces of work: a few for each thread, so that one that was held up
// leaves its share to the others, but none too small.
func (j *job) shares(p Parallel) int {
	threads := 8
	if d, ok := p.(interface{ Threads() int }); ok {
		threads = d.Threads()
	}
	return min(max(threads, j.m*j.n*j.k/share), 4*threads)
}

// cut divides C into parts of rows times cuts of panels. A part packs B again, a cut packs A
// again; the factors are the measured costs of packing a row of either.
func (j *job) cut(shares int) (parts, cuts int) {
	panels, tiles := ceil(j.n, j.nr), ceil(j.m, j.mr)
	least := math.MaxInt
	for c := 1; c <= min(panels, shares); c++ {
		n := min(ceil(shares, c), tiles)
		if cost := 4*j.m*c + 3*j.n*n; cost < least && n*c >= min(shares, panels*tiles) {
			least, parts, cuts = cost, n, c
		}
	}
	return parts, cuts
}

// apart cuts C into rectangles; each packs the rows of A and columns of B that it needs. It is
// for small products, where a second round of threads would cost more than packing twice.
func (j *job) apart(p Parallel) {
	panels := ceil(j.n, j.nr)
	parts, cuts := j.cut(j.shares(p))
	rows, width := ceil(ceil(j.m, parts), j.mr)*j.mr, ceil(panels, cuts)
	p.Parallel(int64(parts*cuts), 1, func(lo, hi int64) {
		s := pool.Get().(*scratch)
		defer pool.Put(s)
		for i := int(lo); i < int(hi); i++ {
			m0, m1 := i/cuts*rows, min(j.m, (i/cuts+1)*rows)
			from, to := i%cuts*width, min(panels, (i%cuts+1)*width)
			if m0 >= m1 || from >= to {
				continue
			}
			all := ceil(m1-m0, j.mr) * j.mr
			a := grow(&s.own, all*j.k)
			for k := 0; k < j.k; k += kc {
				j.packA(a[all*k:], m0, m1, k, min(kc, j.k-k))
			}
			j.region(s, a, m0, m1, m0, m1, from, to, 0, j.k)
		}
	})
}

// together packs a group of A's rows and terms with all threads, then cuts the columns of C
// (and its rows, when there are few columns) among them.
func (j *job) together(p Parallel) {
	panels := ceil(j.n, j.nr)
	group := ceil(min(j.m, max(1024, packedA/j.k)), j.mr) * j.mr
	terms := min(j.k, max(kc, packedA/group/kc*kc))
	var s *[]float32
	select {
	case s = <-packs:
	default:
		s = new([]float32)
	}
	defer func() {
		select {
		case packs <- s:
		default:
		}
	}()
	a := grow(s, max(group*terms, packedA))
	for m0 := 0; m0 < j.m; m0 += group {
		m1 := min(j.m, m0+group)
		tiles := ceil(m1-m0, j.mr)
		parts := min(tiles, ceil(j.shares(p), panels))
		rows := ceil(tiles, parts) * j.mr
		parts = ceil(m1-m0, rows)
		for k0 := 0; k0 < j.k; k0 += terms {
			k1 := min(j.k, k0+terms)
			p.Parallel(int64(tiles), int64(ceil(1<<16, j.mr*(k1-k0))), func(lo, hi int64) {
				i, to := m0+int(lo)*j.mr, min(m1, m0+int(hi)*j.mr)
				for k := k0; k < k1; k += kc {
					n := min(kc, k1-k)
					j.packA(a[tiles*j.mr*(k-k0)+(i-m0)*n:], i, to, k, n)
				}
			})
			p.Parallel(int64(parts*panels), 1, func(lo, hi int64) {
				s := pool.Get().(*scratch)
				defer pool.Put(s)
				for i := int(lo); i < int(hi); {
					part, from := i/panels, i%panels
					to := min(panels, from+int(hi)-i)
					j.region(s, a, m0, m1, m0+part*rows, min(m1, m0+(part+1)*rows), from, to, k0, k1)
					i += to - from
				}
			})
		}
	}
}

// empty is C = add + bias for a sum of no terms.
func (j *job) empty() {
	for i := range j.m {
		for x := range j.n {
			var s float32
			if j.add != nil {
				s = j.add[i*j.ldc+x]
			}
			if j.bias != nil {
				s += j.bias[x]
			}
			j.c[i*j.ldc+x] = s
		}
	}
}

// scratch is a worker's memory.
type scratch struct {
	own []float32 // packed A of a product that is computed apart
	b   []float32 // a strip of B
	t   tile
}

var (
	pool = sync.Pool{New: func() any { return new(scratch) }}
	// packs are packed As that threads share. A sync.Pool would keep one for each processor on which a lane
	// ever ran.
	packs = make(chan *[]float32, 4)
)

// grow returns s with n floats and some room behind, which kernels may read but do not use.
func grow(s *[]float32, n int) []float32 {
	if cap(*s) < n+64 {
		*s = make([]float32, n+64)
	}
	return (*s)[:n]
}

// region computes rows m0 to m1 and panels p0 to p1 of C over the terms k0 to k1. a is rows a0
// to a1 packed over these terms.
func (j *job) region(s *scratch, a []float32, a0, a1, m0, m1, p0, p1, k0, k1 int) {
	j.announce(m0, m1, p0*j.nr, min(j.n, p1*j.nr))
	b := grow(&s.b, strip*kc*j.nr)
	first := j.start(m0, m1, p0*j.nr, min(j.n, p1*j.nr), k0)
	all := ceil(a1-a0, j.mr) * j.mr
	for ; p0 < p1; p0 += strip {
		x0, x1 := p0*j.nr, min(j.n, min(p1, p0+strip)*j.nr)
		for k := k0; k < k1; k += kc {
			n := min(kc, k1-k)
			j.packB(b, x0, x1, k, n)
			src := first
			if k > 0 {
				src = mat{j.c, j.ldc, 1}
			}
			ak := a[all*(k-k0)+(m0-a0)*n:]
			for i := m0; i < m1; i += blockRows / j.mr * j.mr {
				to := min(m1, i+blockRows/j.mr*j.mr)
				for x := x0; x < x1; x += j.nr {
					j.column(s, ak[(i-m0)*n:], b[(x-x0)*n:], src, i, to, x, n)
				}
			}
		}
	}
}

// column computes the tiles of rows m0 to m1 in the panel at column x, over the n terms that
// are packed in a and b.
func (j *job) column(s *scratch, a, b []float32, src mat, m0, m1, x, n int) {
	cols := min(j.nr, j.n-x)
	t := &s.t
	t.k, t.b = n, unsafe.Pointer(unsafe.SliceData(b))
	t.lda, t.ldc, t.lds = j.mr*4, j.ldc*4, src.row*4
	for i := m0; i < m1; i += j.mr {
		t.rows = min(j.mr, m1-i)
		t.a = unsafe.Pointer(unsafe.SliceData(a[(i-m0)*n:]))
		t.c = unsafe.Pointer(&j.c[i*j.ldc+x])
		t.src = unsafe.Pointer(&src.data[i*src.row+x*src.col])
		j.tile(t, cols)
	}
}

// start says what the first block of the sum is added to: add, the bias (a row for all), a
// row of zeros, or C when it holds add + bias.
func (j *job) start(m0, m1, n0, n1, k0 int) mat {
	switch {
	case k0 > 0:
		return mat{j.c, j.ldc, 1}
	case j.add == nil && j.bias == nil:
		return mat{zeros[:], 0, 0}
	case j.add == nil:
		return mat{j.bias, 0, 1}
	case j.bias == nil:
		return mat{j.add, j.ldc, 1}
	}
	for i := m0; i < m1; i++ {
		for x := n0; x < n1; x++ {
			j.c[i*j.ldc+x] = j.add[i*j.ldc+x] + j.bias[x]
		}
	}
	return mat{j.c, j.ldc, 1}
}

// packA writes rows m0 to m1 over n terms from k on as panels [n][mr].
func (j *job) packA(dst []float32, m0, m1, k, n int) {
	src := j.a.data[m0*j.a.row+k*j.a.col:]
	if j.a.col != 1 {
		j.packRows(dst, src, j.a.col, n, m1-m0, j.mr)
		return
	}
	for i := 0; i < m1-m0; i += j.mr {
		j.transpose(dst[i*n:], j.mr, src[i*j.a.row:], j.a.row, n, min(j.mr, m1-m0-i), j.mr)
	}
}

// packB writes columns x0 to x1 over n terms from k on as panels [n][nr].
func (j *job) packB(dst []float32, x0, x1, k, n int) {
	src := j.b.data[k*j.b.row+x0*j.b.col:]
	if j.b.col == 1 {
		j.packRows(dst, src, j.b.row, n, x1-x0, j.nr)
		return
	}
	for x := 0; x < x1-x0; x += j.nr {
		j.transpose(dst[x*n:], j.nr, src[x*j.b.col:], j.b.col, n, min(j.nr, x1-x0-x), j.nr)
	}
}

// Name is the instruction set of the kernels in use.
func Name() string { return active.name }
