package moe

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/gemm"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

func logitsCPU(c device.CPU, a *device.Args) {
	n, d, e := a.I[0], a.I[1], a.I[2]
	gemm.NT(c, int(n), int(e), int(d), c.F32(a.P[2], n*e), c.F32(a.P[0], n*d), c.F32(a.P[1], e*d), nil, nil)
}

func logitsBackwardInputCPU(c device.CPU, a *device.Args) {
	n, d, e := a.I[0], a.I[1], a.I[2]
	gemm.NN(c, int(n), int(d), int(e), c.F32(a.P[3], n*d), c.F32(a.P[1], n*e), c.F32(a.P[0], e*d), c.F32(a.P[2], n*d))
}

func logitsBackwardWeightCPU(c device.CPU, a *device.Args) {
	n, d, e := a.I[0], a.I[1], a.I[2]
	gemm.TN(c, int(e), int(d), int(n), c.F32(a.P[3], e*d), c.F32(a.P[1], n*e), c.F32(a.P[0], n*d), c.F32(a.P[2], e*d))
}

// routing is a routing as a CPU kernel sees it.
type routing struct {
	offsets, first, rows, token, expert []int32
}

func routingAt(c device.CPU, p device.Ptr, tokens, experts, slots int64) *routing {
	l := RoutingOf(tokens, experts, slots)
	w := c.I32(p, l.Words)
	m := tokens * slots
	r := &routing{
		offsets: w[:experts+1], first: w[l.First : l.First+tokens+1],
		rows: w[l.Rows : l.Rows+m], token: w[l.Token : l.Token+m], expert: w[l.Expert : l.Expert+m],
	}
	return r
}

// of lists the rows of a token, in ascending order of expert.
func (r *routing) of(t int64) []int32 { return r.rows[r.first[t]:r.first[t+1]] }

// inUse is the number of rows.
func (r *routing) inUse() int64 { return int64(r.offsets[len(r.offsets)-1]) }

func gatherCPU(c device.CPU, a *device.Args) {
	n, d, e, s := a.I[0], a.I[1], a.I[2], a.I[3]
	x, r, y := c.F32(a.P[0], n*d), routingAt(c, a.P[1], n, e, s), c.F32(a.P[2], n*s*d)
	loops.Rows(c, r.inUse(), d, func(lo, hi int64) {
		for i := lo; i < hi; i++ {
			t := int64(r.token[i])
			copy(y[i*d:(i+1)*d], x[t*d:(t+1)*d])
		}
	})
}

func gatherBackwardCPU(c device.CPU, a *device.Args) {
	n, d, e, s := a.I[0], a.I[1], a.I[2], a.I[3]
	r, dy, add, dx := routingAt(c, a.P[0], n, e, s), c.F32(a.P[1], n*s*d), c.F32(a.P[2], n*d), c.F32(a.P[3], n*d)
	loops.Rows(c, n, d, func(lo, hi int64) {
		for t := lo; t < hi; t++ {
			to := dx[t*d : (t+1)*d]
			if add == nil {
				clear(to)
			} else if a.P[2] != a.P[3] {
				copy(to, add[t*d:(t+1)*d])
			}
			for _, i := range r.of(t) {
				vec.Add(to, to, dy[int64(i)*d:int64(i+1)*d])
			}
		}
	})
}

func combineCPU(c device.CPU, a *device.Args) {
	n, d, e, s := a.I[0], a.I[1], a.I[2], a.I[3]
	x, gates, r, y := c.F32(a.P[0], n*s*d), c.F32(a.P[1], n*s), routingAt(c, a.P[2], n, e, s), c.F32(a.P[3], n*d)
	loops.Rows(c, n, d, func(lo, hi int64) {
		for t := lo; t < hi; t++ {
			to := y[t*d : (t+1)*d]
			clear(to)
			for _, i := range r.of(t) {
				vec.Axpy(to, gates[i], x[int64(i)*d:int64(i+1)*d])
			}
		}
	})
}

func combineBackwardCPU(c device.CPU, a *device.Args) {
	n, d, e, s := a.I[0], a.I[1], a.I[2], a.I[3]
	x, gates, r := c.F32(a.P[0], n*s*d), c.F32(a.P[1], n*s), routingAt(c, a.P[2], n, e, s)
	dy, dx, dgates := c.F32(a.P[3], n*d), c.F32(a.P[4], n*s*d), c.F32(a.P[5], n*s)
	loops.Rows(c, r.inUse(), d, func(lo, hi int64) {
		for i := lo; i < hi; i++ {
			t := int64(r.token[i])
			g := dy[t*d : (t+1)*d]
			dgates[i] = float32(vec.Dot(g, x[i*d:(i+1)*d])) // before dx, which may be x
			vec.Scale(dx[i*d:(i+1)*d], g, gates[i])
		}
	})
}
