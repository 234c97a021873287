package gemm

import "unsafe"

// The kernels of this machine, chosen once.
func init() {
	hasAVX2, hasAVX512 := features()
	machine = append(machine, &plain)
	if hasAVX2 {
		machine = append(machine, &avx2)
	}
	if hasAVX512 {
		machine = append(machine, &avx512)
	}
	active = machine[len(machine)-1]
}

var avx512 = kernels{
	name: "avx512", mr: 14, nr: 32,
	tile:      tile512,
	packRows:  packRows512,
	transpose: transpose512,
}

var avx2 = kernels{
	name: "avx2", mr: 6, nr: 16,
	tile:      tile256,
	packRows:  packRowsPlain,
	transpose: transposePlain,
}

//go:noescape
func kernel14x32(t *tile)

//go:noescape
func kernel8x32(t *tile)

//go:noescape
func kernel4x32(t *tile)

//go:noescape
func kernel1x32(t *tile)

//go:noescape
func kernel6x16(t *tile)

//go:noescape
func kernel1x16(t *tile)

// tile512 runs the smallest kernel that has the tile's rows. The kernels read as many
// scalars of A a term as they have rows, so A needs room for the kernel's rows.
func tile512(t *tile, cols int) {
	t.mask = 1<<cols - 1
	switch {
	case t.rows > 8:
		kernel14x32(t)
	case t.rows > 4:
		kernel8x32(t)
	case t.rows > 1:
		kernel4x32(t)
	default:
		kernel1x32(t)
	}
}

// tile256 computes a tile that is not of full width into a buffer first.
func tile256(t *tile, cols int) {
	if cols == 16 {
		if t.rows > 1 {
			kernel6x16(t)
		} else {
			kernel1x16(t)
		}
		return
	}
	var buf [6 * 16]float32
	u := *t
	u.c, u.ldc = unsafe.Pointer(&buf), 16*4
	u.src, u.lds = unsafe.Pointer(&zeros), 0
	if t.rows > 1 {
		kernel6x16(&u)
	} else {
		kernel1x16(&u)
	}
	t.finish(buf[:], 16, cols)
}

//go:noescape
func copyRows(k int, src *float32, lds int, dst *float32, ldd int, load, store uint64)

//go:noescape
func copyPanels(k int, src *float32, lds int, dst *float32, width, panels int)

//go:noescape
func transpose(k int, src *float32, lds int, dst *float32, ldd int, rows int)

func packRows512(dst, src []float32, lds, k, n, width int) {
	if k == 0 || n == 0 {
		return
	}
	_, _ = src[(k-1)*lds+n-1], dst[ceil(n, width)*width*k-1]
	whole := n / width
	if whole > 0 {
		copyPanels(k, &src[0], lds*4, &dst[0], width, whole)
	}
	if rest := n - whole*width; rest > 0 {
		copyRows(k, &src[whole*width], lds*4, &dst[whole*width*k], width*4, 1<<rest-1, 1<<width-1)
	}
}

func transpose512(dst []float32, ldd int, src []float32, lds, k, n, width int) {
	if k == 0 {
		return
	}
	_, _ = src[(n-1)*lds+k-1], dst[(k-1)*ldd+width-1]
	for r := 0; r < width; r += 16 {
		if rows := min(16, n-r); rows > 0 {
			transpose(k, &src[r*lds], lds*4, &dst[r], ldd*4, rows)
		}
	}
	if n < width {
		for i := range k {
			clear(dst[i*ldd+n : i*ldd+width])
		}
	}
}
