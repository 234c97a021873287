//go:build race

package gemm

import (
	"runtime"
	"unsafe"
)

// touch tells the race detector of an access to rows of cols floats, ld apart. It does not see
// the kernels' accesses, which go through unsafe pointers and assembly.
func touch(s []float32, ld, rows, cols int, write bool) {
	f := runtime.RaceReadRange
	if write {
		f = runtime.RaceWriteRange
	}
	for r := 0; r < rows && cols > 0; r++ {
		f(unsafe.Pointer(&s[r*ld]), cols*4)
	}
}

// announce touches what a block of a job reads and writes.
func (j *job) announce(m0, m1, n0, n1 int) {
	touch(j.c[m0*j.ldc+n0:], j.ldc, m1-m0, n1-n0, true)
	if j.add != nil {
		touch(j.add[m0*j.ldc+n0:], j.ldc, m1-m0, n1-n0, false)
	}
	if j.bias != nil {
		touch(j.bias[n0:], 0, 1, n1-n0, false)
	}
	if j.a.col == 1 {
		touch(j.a.data[m0*j.a.row:], j.a.row, m1-m0, j.k, false)
	} else {
		touch(j.a.data[m0:], j.a.col, j.k, m1-m0, false)
	}
	if j.b.col == 1 {
		touch(j.b.data[n0:], j.n, j.k, n1-n0, false)
	} else {
		touch(j.b.data[n0*j.k:], j.k, n1-n0, j.k, false)
	}
}
