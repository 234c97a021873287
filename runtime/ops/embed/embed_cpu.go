package embed

import (
	"fmt"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

func forwardCPU(c device.CPU, a *device.Args) {
	rows, v, d := a.I[0], a.I[1], a.I[2]
	ids, weight, y := c.I32(a.P[0], rows), c.F32(a.P[1], v*d), c.F32(a.P[2], rows*d)
	loops.Rows(c, rows, d, func(lo, hi int64) {
		for r := lo; r < hi; r++ {
			id := check(ids[r], v)
			copy(y[r*d:(r+1)*d], weight[id*d:(id+1)*d])
		}
	})
}

// columns is how many columns of the table one thread owns at least: each thread goes
// through all rows in order, so the order of additions is that of the rows.
const columns = 64

func backwardWeightCPU(c device.CPU, a *device.Args) {
	rows, v, d := a.I[0], a.I[1], a.I[2]
	ids, dy := c.I32(a.P[0], rows), c.F32(a.P[1], rows*d)
	add, dw := c.F32(a.P[2], v*d), c.F32(a.P[3], v*d)
	if a.P[2] != a.P[3] {
		loops.Elements(c, v*d, func(lo, hi int64) {
			if add == nil {
				clear(dw[lo:hi])
				return
			}
			copy(dw[lo:hi], add[lo:hi])
		})
	}
	c.Parallel(d, columns, func(lo, hi int64) {
		for r := range rows {
			id := check(ids[r], v)
			to := dw[id*d+lo : id*d+hi]
			vec.Add(to, to, dy[r*d+lo:r*d+hi])
		}
	})
}

// check returns an id as an index; an id outside of the table is a fault in the data.
func check(id int32, v int64) int64 {
	if id < 0 || int64(id) >= v {
		panic(fmt.Errorf("id %d is outside of a table of %d rows", id, v))
	}
	return int64(id)
}
