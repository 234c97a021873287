//go:build race

package gemm

import (
	"runtime"
	"unsafe"
)

// announce tells the race detector what a block reads and writes: it does not see the
// kernels' accesses, which go through unsafe pointers and assembly.
func (j *job) announce(m0, m1, n0, n1 int) {
	touch := func(s []float32, lo, hi int, f func(unsafe.Pointer, int)) {
		f(unsafe.Pointer(&s[lo]), (hi-lo)*4)
	}
	for i := m0; i < m1; i++ {
		touch(j.c, i*j.n+n0, i*j.n+n1, runtime.RaceWriteRange)
		if j.add != nil {
			touch(j.add, i*j.n+n0, i*j.n+n1, runtime.RaceReadRange)
		}
	}
	if j.bias != nil {
		touch(j.bias, n0, n1, runtime.RaceReadRange)
	}
	operand := func(m mat, outer0, outer1, outer, inner0, inner1 int) {
		for o := outer0; o < outer1; o++ {
			touch(m.data, o*outer+inner0, o*outer+inner1, runtime.RaceReadRange)
		}
	}
	if j.a.col == 1 {
		operand(j.a, m0, m1, j.a.row, 0, j.k)
	} else {
		operand(j.a, 0, j.k, j.a.col, m0, m1)
	}
	if j.b.col == 1 {
		operand(j.b, 0, j.k, j.b.row, n0, n1)
	} else {
		operand(j.b, n0, n1, j.b.col, 0, j.k)
	}
}
