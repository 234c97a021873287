package attention

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/gemm"
	"github.com/megatrain/mtc/runtime/vec"
)

// Sizes of backward's blocks: queries are rows of four tiles, keys four panels.
const (
	backQueries  = 56
	backKeys     = 128
	backTaskRows = 9 * backQueries // queries packed together
)

// backwardCPU gives each key and value head of a sequence to one thread, so that the sums of
// dk and dv over the query heads of a group and over queries have one order.
func backwardCPU(c device.CPU, a *device.Args) {
	g := unpack(a)
	n := int64(g.batch) * int64(g.seq)
	wq, wk := g.heads*g.hd, g.kv*g.hd
	nq, nk := n*int64(wq), n*int64(wk)
	q, y, dy, dq := c.F32(a.P[0], nq), c.F32(a.P[3], nq), c.F32(a.P[5], nq), c.F32(a.P[6], nq)
	k, v, dk, dv := c.F32(a.P[1], nk), c.F32(a.P[2], nk), c.F32(a.P[7], nk), c.F32(a.P[8], nk)
	lse := c.F32(a.P[4], n*int64(g.heads))
	starts := c.I32(a.P[12], n)
	for i, d := range [][]float32{dq, dk, dv} {
		begin(c, d, a.P[6+i], a.P[9+i])
	}
	c.Parallel(int64(g.batch*g.kv), 1, func(lo, hi int64) {
		s := pool.Get().(*scratch)
		defer pool.Put(s)
		for i := int(lo); i < int(hi); i++ {
			b, kvh := i/g.kv, i%g.kv
			w := backward{geom: &g, s: s}
			w.k, w.v = head(k, wk, b, g.seq, kvh*g.hd), head(v, wk, b, g.seq, kvh*g.hd)
			w.dk, w.dv = head(dk, wk, b, g.seq, kvh*g.hd), head(dv, wk, b, g.seq, kvh*g.hd)
			for h := kvh * (g.heads / g.kv); h < (kvh+1)*(g.heads/g.kv); h++ {
				w.q, w.dq = head(q, wq, b, g.seq, h*g.hd), head(dq, wq, b, g.seq, h*g.hd)
				w.y, w.dy = head(y, wq, b, g.seq, h*g.hd), head(dy, wq, b, g.seq, h*g.hd)
				w.lse = head(lse, g.heads, b, g.seq, h)
				if starts == nil {
					w.sequence(g.seq)
					continue
				}
				for row, at := starts[b*g.seq:][:g.seq], 0; at < g.seq; {
					end := documentEnd(row, at)
					w.document(at, end-at)
					at = end
				}
			}
		}
	})
}

// sequence adds the gradients of n positions from the first on.
func (w *backward) sequence(n int) {
	for from := 0; from < n; from += backTaskRows {
		w.run(from, min(n, from+backTaskRows))
	}
}

// document adds the gradients of n positions from start on that see only each other.
func (w *backward) document(start, n int) {
	g := *w.geom
	g.seq = n
	part := backward{geom: &g, s: w.s, lse: w.lse.from(start)}
	part.q, part.k, part.v, part.y, part.dy = w.q.from(start), w.k.from(start), w.v.from(start), w.y.from(start), w.dy.from(start)
	part.dq, part.dk, part.dv = w.dq.from(start), w.dk.from(start), w.dv.from(start)
	part.sequence(n)
}

// begin sets a gradient to what it adds to.
func begin(c device.CPU, d []float32, p, add device.Ptr) {
	if add == p {
		return
	}
	from := c.F32(add, int64(len(d)))
	c.Parallel(int64(len(d)), 1<<16, func(lo, hi int64) {
		if add.Nil() {
			clear(d[lo:hi])
			return
		}
		copy(d[lo:hi], from[lo:hi])
	})
}

// backward is one query head with its key and value head.
type backward struct {
	*geom
	s                          *scratch
	q, k, v, y, dy, dq, dk, dv rows
	lse                        rows
}

// run adds the gradients of the queries from..to. With S = Q K^T, P = e^(cap(scale S) - lse)
// and delta = rowsum(dY * Y) (Dao et al., algorithm 4):
//
//	dV += P^T dY    dP = dY V^T    dS = P (dP - delta) scale cap'
//	dQ += dS K      dK += dS^T Q
func (w *backward) run(from, to int) {
	s, hd, n := w.s, w.hd, to-from
	blocks := ceil(n, backQueries)
	left, right := hd*backQueries, gemm.Packed(backQueries, hd)
	qt, dyt := grow(&s.qt, blocks*left), grow(&s.dyt, blocks*left)
	q, dy := grow(&s.q, blocks*right), grow(&s.dy, blocks*right)
	delta := grow(&s.delta, n)
	for b := range blocks {
		t := from + b*backQueries
		nq := min(backQueries, to-t)
		gemm.Transpose(qt[b*left:], backQueries, w.q.at(t), w.q.width, hd, nq)
		gemm.Transpose(dyt[b*left:], backQueries, w.dy.at(t), w.dy.width, hd, nq)
		gemm.PackRows(q[b*right:], w.q.at(t), w.q.width, nq, hd)
		gemm.PackRows(dy[b*right:], w.dy.at(t), w.dy.width, nq, hd)
		for i := range nq {
			delta[t-from+i] = float32(vec.Dot(w.dy.at(t + i)[:hd], w.y.at(t+i)))
		}
	}
	k, kt, vt := grow(&s.k, gemm.Packed(backKeys, hd)), grow(&s.kt, gemm.Packed(hd, backKeys)), grow(&s.vt, gemm.Packed(hd, backKeys))
	lo, _ := w.visible(from, w.seq)
	_, hi := w.visible(to-1, w.seq)
	for j := lo / backKeys * backKeys; j < hi; j += backKeys {
		nk := min(backKeys, w.seq-j)
		gemm.PackRows(k, w.k.at(j), w.k.width, nk, hd)
		gemm.PackCols(kt, w.k.at(j), w.k.width, hd, nk)
		gemm.PackCols(vt, w.v.at(j), w.v.width, hd, nk)
		for b := range blocks {
			t := from + b*backQueries
			nq := min(backQueries, to-t)
			if w.meet(t, nq, j, nk) {
				w.block(t, nq, j, nk, delta[t-from:], qt[b*left:], dyt[b*left:], q[b*right:], dy[b*right:], k, kt, vt)
			}
		}
	}
}

// block is nq queries from t against nk keys from j.
func (w *backward) block(t, nq, j, nk int, delta, qt, dyt, q, dy, k, kt, vt []float32) {
	s, hd := w.s, w.hd
	p, ds := grow(&s.p, backQueries*backKeys), grow(&s.ds, backQueries*backKeys)
	dst := grow(&s.dst, backKeys*backQueries)
	s.tile.Block(nq, nk, hd, p, backKeys, false, qt, backQueries, kt)
	s.tile.Block(nq, nk, hd, ds, backKeys, false, dyt, backQueries, vt)
	wide := ceil(nk, 16) * 16
	for i := range nq {
		pr, dr := p[i*backKeys:][:wide], ds[i*backKeys:][:wide]
		clear(pr[nk:])
		clear(dr[nk:])
		vec.SoftmaxGrad(pr, dr, w.scale, w.lse.at(t + i)[0], delta[i], w.cap)
		lo, hi := w.visible(t+i, w.seq)
		if lo = min(max(lo-j, 0), nk); lo > 0 {
			clear(pr[:lo])
			clear(dr[:lo])
		}
		if hi = max(hi-j, 0); hi < nk {
			clear(pr[hi:])
			clear(dr[hi:])
		}
	}
	s.tile.Block(nk, hd, nq, w.dv.at(j), w.dv.width, true, p, backKeys, dy)
	s.tile.Block(nk, hd, nq, w.dk.at(j), w.dk.width, true, ds, backKeys, q)
	gemm.Transpose(dst, backQueries, ds, backKeys, nk, nq)
	s.tile.Block(nq, hd, nk, w.dq.at(t), w.dq.width, true, dst, backQueries, k)
}
