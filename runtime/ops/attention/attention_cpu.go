package attention

import (
	"math"

	"github.com/megatrain/mtc/runtime/device"
)

func forwardCPU(c device.CPU, a *device.Args) {
	g := unpack(a)
	rows := int64(g.batch * g.seq)
	wq, wk := int64(g.heads*g.hd), int64(g.kv*g.hd)
	q, y := c.F32(a.P[0], rows*wq), c.F32(a.P[3], rows*wq)
	k, v := c.F32(a.P[1], rows*wk), c.F32(a.P[2], rows*wk)
	lse := c.F32(a.P[4], rows*int64(g.heads))
	c.Parallel(int64(g.batch*g.heads), 1, func(lo, hi int64) {
		for i := int(lo); i < int(hi); i++ {
			b, h := i/g.heads, i%g.heads
			off := b * g.seq * int(wk)
			for t := range g.seq {
				r := b*g.seq + t
				lse[r*g.heads+h] = g.row(y[r*int(wq)+h*g.hd:][:g.hd], q[r*int(wq)+h*g.hd:][:g.hd],
					k[off:], v[off:], h, t, g.seq)
			}
		}
	})
}

func cachedCPU(c device.CPU, a *device.Args) {
	g := unpack(a)
	rows := g.batch * g.seq
	wq, wk := g.heads*g.hd, g.kv*g.hd
	n := g.pos + rows
	q, y := c.F32(a.P[0], int64(rows*wq)), c.F32(a.P[5], int64(rows*wq))
	kc, vc := c.F32(a.P[3], int64(n*wk)), c.F32(a.P[4], int64(n*wk))
	copy(kc[g.pos*wk:], c.F32(a.P[1], int64(rows*wk)))
	copy(vc[g.pos*wk:], c.F32(a.P[2], int64(rows*wk)))
	c.Parallel(int64(g.heads), 1, func(lo, hi int64) {
		for h := int(lo); h < int(hi); h++ {
			for r := range rows {
				o := r*wq + h*g.hd
				g.row(y[o:][:g.hd], q[o:][:g.hd], kc, vc, h, g.pos+r, n)
			}
		}
	})
}

// row is the attention of one query row; it returns the log of the softmax's sum.
func (g *geom) row(y, q, k, v []float32, h, t, n int) float32 {
	w := g.kv * g.hd
	o := h / (g.heads / g.kv) * g.hd
	lo, hi := g.visible(t, n)
	s := make([]float64, hi-lo)
	m := math.Inf(-1)
	for u := lo; u < hi; u++ {
		s[u-lo] = g.logit(dot(q, k[u*w+o:][:g.hd]))
		m = max(m, s[u-lo])
	}
	acc := make([]float64, g.hd)
	var sum float64
	for u := lo; u < hi; u++ {
		p := math.Exp(s[u-lo] - m)
		sum += p
		for d, x := range v[u*w+o:][:g.hd] {
			acc[d] += p * float64(x)
		}
	}
	for d := range y {
		y[d] = float32(acc[d] / sum)
	}
	return float32(m + math.Log(sum))
}

func (g *geom) logit(dot float64) float64 {
	s := dot * float64(g.scale)
	if g.cap > 0 {
		s = float64(g.cap) * math.Tanh(s/float64(g.cap))
	}
	return s
}

func dot(a, b []float32) float64 {
	var s float64
	for i := range a {
		s += float64(a[i]) * float64(b[i])
	}
	return s
}

func backwardCPU(c device.CPU, a *device.Args) {
	g := unpack(a)
	rows := g.batch * g.seq
	wq, wk := g.heads*g.hd, g.kv*g.hd
	nq, nk := int64(rows*wq), int64(rows*wk)
	q, y, dy, dq := c.F32(a.P[0], nq), c.F32(a.P[3], nq), c.F32(a.P[5], nq), c.F32(a.P[6], nq)
	k, v, dk, dv := c.F32(a.P[1], nk), c.F32(a.P[2], nk), c.F32(a.P[7], nk), c.F32(a.P[8], nk)
	lse := c.F32(a.P[4], int64(rows*g.heads))
	for i, d := range [][]float32{dq, dk, dv} {
		switch add := a.P[9+i]; {
		case add.Nil():
			clear(d)
		case add != a.P[6+i]:
			copy(d, c.F32(add, int64(len(d))))
		}
	}
	c.Parallel(int64(g.batch*g.kv), 1, func(lo, hi int64) {
		for i := int(lo); i < int(hi); i++ {
			b, kvh := i/g.kv, i%g.kv
			for h := kvh * (g.heads / g.kv); h < (kvh+1)*(g.heads/g.kv); h++ {
				for t := range g.seq {
					r := b*g.seq + t
					o := r*wq + h*g.hd
					qr, dyr, dqr := q[o:][:g.hd], dy[o:][:g.hd], dq[o:][:g.hd]
					delta := dot(dyr, y[o:][:g.hd])
					l := float64(lse[r*g.heads+h])
					from, to := g.visible(t, g.seq)
					for u := from; u < to; u++ {
						ko := (b*g.seq+u)*wk + kvh*g.hd
						s := g.logit(dot(qr, k[ko:][:g.hd]))
						p := math.Exp(s - l)
						ds := p * (dot(dyr, v[ko:][:g.hd]) - delta) * float64(g.scale)
						if g.cap > 0 {
							x := s / float64(g.cap)
							ds *= 1 - x*x
						}
						for d := range g.hd {
							dv[ko+d] += float32(p * float64(dyr[d]))
							dk[ko+d] += float32(ds * float64(qr[d]))
							dqr[d] += float32(ds * float64(k[ko+d]))
						}
					}
				}
			}
		}
	})
}
