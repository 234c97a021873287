package finite

import (
	"math"
	"sync"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
)

// checkCPU finds the first element that is not finite. Operands: P = {X}; I[0] rows of I[1]
// elements, I[2] the number of the place.
func checkCPU(c device.CPU, a *device.Args) {
	n := a.I[0] * a.I[1]
	x := c.F32(a.P[0], n)
	var mu sync.Mutex
	at := n
	loops.Elements(c, n, func(lo, hi int64) {
		for i := lo; i < hi; i++ {
			if math.Float32bits(x[i])&0x7f800000 == 0x7f800000 {
				mu.Lock()
				at = min(at, i)
				mu.Unlock()
				return
			}
		}
	})
	if at == n {
		return
	}
	places.Lock()
	p := places.list[a.I[2]]
	places.Unlock()
	panic(&NonFinite{Op: p.Op, Value: p.Value, Line: p.Line, Row: at / a.I[1], Column: at % a.I[1], Number: x[at]})
}
