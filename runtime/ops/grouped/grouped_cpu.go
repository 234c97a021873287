package grouped

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/gemm"
	"github.com/megatrain/mtc/runtime/vec"
)

// sizes are the constants of a launch; m is the number of slots.
type sizes struct{ in, out, experts, m int64 }

func sizesOf(a *device.Args) sizes {
	return sizes{in: a.I[1], out: a.I[2], experts: a.I[3], m: a.I[0] * a.I[4]}
}

// each calls body for every expert with the range of its rows.
func (s sizes) each(c device.CPU, routing device.Ptr, body func(e, lo, hi int64)) {
	offsets := c.I32(routing, s.experts+1)
	for e := range s.experts {
		body(e, int64(offsets[e]), int64(offsets[e+1]))
	}
}

func forwardCPU(c device.CPU, a *device.Args) {
	s := sizesOf(a)
	x, w, y := c.F32(a.P[0], s.m*s.in), c.F32(a.P[1], s.experts*s.out*s.in), c.F32(a.P[3], s.m*s.out)
	bias := c.F32(a.P[4], s.experts*s.out)
	s.each(c, a.P[2], func(e, lo, hi int64) {
		if lo < hi {
			gemm.NT(c, int(hi-lo), int(s.out), int(s.in), y[lo*s.out:hi*s.out], x[lo*s.in:hi*s.in], w[e*s.out*s.in:(e+1)*s.out*s.in], nil, part(bias, e*s.out, (e+1)*s.out))
		}
	})
}

func backwardInputCPU(c device.CPU, a *device.Args) {
	s := sizesOf(a)
	w, dy, add, dx := c.F32(a.P[0], s.experts*s.out*s.in), c.F32(a.P[2], s.m*s.out), c.F32(a.P[3], s.m*s.in), c.F32(a.P[4], s.m*s.in)
	s.each(c, a.P[1], func(e, lo, hi int64) {
		if lo < hi {
			gemm.NN(c, int(hi-lo), int(s.in), int(s.out), dx[lo*s.in:hi*s.in], dy[lo*s.out:hi*s.out], w[e*s.out*s.in:(e+1)*s.out*s.in], part(add, lo*s.in, hi*s.in))
		}
	})
}

func backwardWeightCPU(c device.CPU, a *device.Args) {
	s := sizesOf(a)
	n := s.out * s.in
	x, dy, add, dw := c.F32(a.P[0], s.m*s.in), c.F32(a.P[2], s.m*s.out), c.F32(a.P[3], s.experts*n), c.F32(a.P[4], s.experts*n)
	s.each(c, a.P[1], func(e, lo, hi int64) {
		to, from := dw[e*n:(e+1)*n], part(add, e*n, (e+1)*n)
		switch {
		case lo < hi:
			gemm.TN(c, int(s.out), int(s.in), int(hi-lo), to, dy[lo*s.out:hi*s.out], x[lo*s.in:hi*s.in], from)
		case from == nil:
			clear(to)
		case a.P[3] != a.P[4]:
			copy(to, from)
		}
	})
}

func backwardBiasCPU(c device.CPU, a *device.Args) {
	s := sizesOf(a)
	dy, add, db := c.F32(a.P[1], s.m*s.out), c.F32(a.P[2], s.experts*s.out), c.F32(a.P[3], s.experts*s.out)
	s.each(c, a.P[0], func(e, lo, hi int64) {
		rowSums(c, hi-lo, s.out, db[e*s.out:(e+1)*s.out], part(add, e*s.out, (e+1)*s.out), func(acc []float32, r int64) {
			vec.Add(acc, acc, dy[(lo+r)*s.out:][:s.out])
		})
	})
}

// part is s[lo:hi], nil for an absent operand.
func part(s []float32, lo, hi int64) []float32 {
	if s == nil {
		return nil
	}
	return s[lo:hi]
}
