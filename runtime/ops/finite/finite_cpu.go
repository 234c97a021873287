package finite

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
)

// checkCPU finds the first element that is not finite, and adds up the elements' bits. Operands:
// P = {X}; I[0] rows of I[1] elements, I[3] apart, I[2] the number of the place.
func checkCPU(c device.CPU, a *device.Args) {
	rows, d, pitch := a.I[0], a.I[1], a.I[3]
	n := rows * d
	if n == 0 {
		return
	}
	x := c.F32(a.P[0], (rows-1)*pitch+d)
	var mu sync.Mutex
	var hash atomic.Uint64
	f := found{first: n}
	loops.Elements(c, n, func(lo, hi int64) {
		var sum uint64
		first := n
		for i := lo; i < hi; i++ {
			bits := math.Float32bits(x[i/d*pitch+i%d])
			sum += mix(uint64(bits), uint64(i))
			if bits&0x7f800000 == 0x7f800000 {
				first = min(first, i)
			}
		}
		hash.Add(sum)
		if first < n {
			mu.Lock()
			f.first = min(f.first, first)
			mu.Unlock()
		}
	})
	f.hash = hash.Load()
	if f.first < n {
		f.bits = math.Float32bits(x[f.first/d*pitch+f.first%d])
	}
	if err := f.judge(a); err != nil {
		panic(err)
	}
}

// mix spreads the bits of element i, so that a sum over elements in any order tells values apart
// that differ in a bit or in the place of an element.
func mix(bits, i uint64) uint64 {
	z := (bits ^ (i+1)*0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
	return z ^ z>>31
}
