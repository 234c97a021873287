package gemm

import "unsafe"

// kernels is the inner loops of one instruction set.
type kernels struct {
	name   string
	mr, nr int // rows and columns of a tile
	// tile computes C = src + A B over the first cols of nr columns.
	tile func(t *tile, cols int)
	// packRows writes the columns x of k rows, lds apart, as panels [k][width]; the last one is
	// filled up with zeros from column n on.
	packRows func(dst, src []float32, lds, k, n, width int)
	// transpose writes dst[i*ldd + x] = src[x*lds + i] for i < k and x < n, 0 for n <= x < width.
	transpose func(dst []float32, ldd int, src []float32, lds, k, n, width int)
}

// active is the instruction set in use, machine all that this machine has (for tests).
var (
	active  = &plain
	machine []*kernels
)

// tile is the arguments of a micro-kernel. A is [k][lda/4], its first mr scalars of a row
// being those of the tile; B is [k][nr]; strides are in bytes. The layout is known to the
// assembly by go_asm.h.
type tile struct {
	k             int
	a, b, c, src  unsafe.Pointer
	lda, ldc, lds int
	rows          int
	mask          int
}

// zeros is a row of src for a tile that adds to nothing (lds = 0).
var zeros [64]float32

// finish adds a tile computed into buf, ld floats a row, to src.
func (t *tile) finish(buf []float32, ld, cols int) {
	for r := range t.rows {
		c := unsafe.Slice((*float32)(unsafe.Add(t.c, r*t.ldc)), cols)
		s := unsafe.Slice((*float32)(unsafe.Add(t.src, r*t.lds)), cols)
		for x := range c {
			c[x] = s[x] + buf[r*ld+x]
		}
	}
}

// plain is the kernels in portable Go: four by four sums in registers.
var plain = kernels{
	name: "plain", mr: 4, nr: 4,
	tile:      tilePlain,
	packRows:  packRowsPlain,
	transpose: transposePlain,
}

func tilePlain(t *tile, cols int) {
	var s00, s01, s02, s03, s10, s11, s12, s13 float32
	var s20, s21, s22, s23, s30, s31, s32, s33 float32
	for i := range t.k {
		a := (*[4]float32)(unsafe.Add(t.a, i*t.lda))
		b := (*[4]float32)(unsafe.Add(t.b, i*16))
		a0, a1, a2, a3 := a[0], a[1], a[2], a[3]
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		s00 += a0 * b0
		s01 += a0 * b1
		s02 += a0 * b2
		s03 += a0 * b3
		s10 += a1 * b0
		s11 += a1 * b1
		s12 += a1 * b2
		s13 += a1 * b3
		s20 += a2 * b0
		s21 += a2 * b1
		s22 += a2 * b2
		s23 += a2 * b3
		s30 += a3 * b0
		s31 += a3 * b1
		s32 += a3 * b2
		s33 += a3 * b3
	}
	buf := [16]float32{s00, s01, s02, s03, s10, s11, s12, s13, s20, s21, s22, s23, s30, s31, s32, s33}
	t.finish(buf[:], 4, cols)
}

func packRowsPlain(dst, src []float32, lds, k, n, width int) {
	for x := 0; x < n; x += width {
		w := min(width, n-x)
		for i := range k {
			d := dst[x*k+i*width:][:width]
			copy(d, src[i*lds+x:][:w])
			clear(d[w:])
		}
	}
}

func transposePlain(dst []float32, ldd int, src []float32, lds, k, n, width int) {
	for x := range width {
		if x >= n {
			for i := range k {
				dst[i*ldd+x] = 0
			}
			continue
		}
		for i, v := range src[x*lds:][:k] {
			dst[i*ldd+x] = v
		}
	}
}
