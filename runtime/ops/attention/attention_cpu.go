package attention

import (
	"math"
	"sync"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/gemm"
	"github.com/megatrain/mtc/runtime/vec"
)

// Sizes of the blocks. Key blocks stand on multiples of their size in every call, so that a
// row meets the same blocks in training, prefill and decoding.
const (
	keyBlock   = 112 // keys of a block: eight tiles of 14 rows
	queryBlock = 64  // queries of a block: two panels of 32 columns
	taskRows   = 512 // queries of a task, which share the packing of a key block
)

// rows is a tensor [rows][width] of one sequence, seen from one head on.
type rows struct {
	data  []float32
	width int
}

func (r rows) at(t int) []float32 { return r.data[t*r.width:] }

// head returns the rows of sequence b (of n rows) from column off on.
func head(data []float32, width, b, n, off int) rows { return rows{data[b*n*width+off:], width} }

func forwardCPU(c device.CPU, a *device.Args) {
	g := unpack(a)
	n, h := int64(g.batch)*int64(g.seq), int64(g.heads)
	wq, wk := g.heads*g.hd, g.kv*g.hd
	q, y := c.F32(a.P[0], n*int64(wq)), c.F32(a.P[3], n*int64(wq))
	k, v := c.F32(a.P[1], n*int64(wk)), c.F32(a.P[2], n*int64(wk))
	lse := c.F32(a.P[4], n*h)
	starts := c.I32(a.P[5], n)
	parts := ceil(g.seq, taskRows)
	c.Parallel(int64(g.batch*g.heads*parts), 1, func(lo, hi int64) {
		s := pool.Get().(*scratch)
		defer pool.Put(s)
		for i := int(lo); i < int(hi); i++ {
			// Late rows see most keys: they come first, so that no thread ends with one.
			part := parts - 1 - i/(g.batch*g.heads)
			b, h := i/g.heads%g.batch, i%g.heads
			f := forward{geom: &g, s: s, from: part * taskRows, keys: g.seq}
			f.to = min(g.seq, f.from+taskRows)
			f.q, f.y = head(q, wq, b, g.seq, h*g.hd), head(y, wq, b, g.seq, h*g.hd)
			f.k, f.v = head(k, wk, b, g.seq, g.kvOf(h)*g.hd), head(v, wk, b, g.seq, g.kvOf(h)*g.hd)
			f.lse = head(lse, g.heads, b, g.seq, h)
			if starts != nil {
				f.documents(starts[b*g.seq:][:g.seq])
				continue
			}
			f.run()
		}
	})
}

// documents takes each document of a row as a sequence of its own, so that its rows have the
// bits that they have alone: keys stand in the same blocks, from the document's start on.
func (f *forward) documents(starts []int32) {
	from, to, q, y, lse := f.from, f.to, f.q, f.y, f.lse
	for at := from; at < to; {
		start := int(starts[at])
		end := documentEnd(starts, at)
		part := *f
		part.from, part.to, part.keys = at-start, min(end, to)-start, end-start
		part.q, part.y, part.lse = q.from(start), y.from(start), lse.from(start)
		part.k, part.v = f.k.from(start), f.v.from(start)
		part.run()
		at = start + part.to
	}
}

// documentEnd is where the document of a position ends.
func documentEnd(starts []int32, at int) int {
	end := at + 1
	for end < len(starts) && starts[end] == starts[at] {
		end++
	}
	return end
}

// from is the rows from row t on.
func (r rows) from(t int) rows { return rows{r.data[t*r.width:], r.width} }

func cachedCPU(c device.CPU, a *device.Args) {
	g := unpack(a)
	n := g.batch * g.seq
	keys := g.pos + n
	wq, wk := g.heads*g.hd, g.kv*g.hd
	q, y := c.F32(a.P[0], int64(n)*int64(wq)), c.F32(a.P[5], int64(n)*int64(wq))
	kc, vc := c.F32(a.P[3], int64(keys)*int64(wk)), c.F32(a.P[4], int64(keys)*int64(wk))
	copy(kc[g.pos*wk:], c.F32(a.P[1], int64(n)*int64(wk)))
	copy(vc[g.pos*wk:], c.F32(a.P[2], int64(n)*int64(wk)))
	parts := ceil(n, taskRows)
	c.Parallel(int64(g.heads*parts), 1, func(lo, hi int64) {
		s := pool.Get().(*scratch)
		defer pool.Put(s)
		for i := int(lo); i < int(hi); i++ {
			h, part := i%g.heads, i/g.heads
			f := forward{geom: &g, s: s, from: g.pos + part*taskRows, keys: keys, first: g.pos}
			f.to = min(keys, f.from+taskRows)
			f.q, f.y = rows{q[h*g.hd:], wq}, rows{y[h*g.hd:], wq}
			f.k, f.v = rows{kc[g.kvOf(h)*g.hd:], wk}, rows{vc[g.kvOf(h)*g.hd:], wk}
			f.run()
		}
	})
}

func (g *geom) kvOf(h int) int { return h / (g.heads / g.kv) }

func ceil(a, b int) int { return (a + b - 1) / b }

// scratch is a worker's memory: operands in the layouts of gemm's blocks.
type scratch struct {
	tile                     gemm.Tile
	q, k, v, s, o            []float32
	m, l, alpha              []float32
	kt, vt, dy, qt, dyt, dst []float32
	p, ds, delta             []float32
}

var pool = sync.Pool{New: func() any { return new(scratch) }}

// grow returns s with n floats (and the slack that blocks may read).
func grow(s *[]float32, n int) []float32 {
	if cap(*s) < n+gemm.Slack {
		*s = make([]float32, n+gemm.Slack)
	}
	return (*s)[:n+gemm.Slack]
}

// forward is the queries from..to of one head of one sequence. Row 0 of q and y is position
// first, row 0 of k and v position 0.
type forward struct {
	*geom
	s          *scratch
	from, to   int // positions of the queries
	first      int
	keys       int // number of keys there are
	q, k, v, y rows
	lse        rows // no data: not wanted
}

// run takes the key blocks in order; each is packed once and meets every query block that
// sees some of it. Scores are kept transposed, [key][query], so that a query is a column: its
// maximum and sum need no addition across a vector, and the block is at once the left operand
// of probabilities times values.
func (f *forward) run() {
	s, n, hd := f.s, f.to-f.from, f.hd
	blocks := ceil(n, queryBlock)
	panel := gemm.Packed(hd, queryBlock)
	q := grow(&s.q, blocks*panel)
	o := grow(&s.o, n*hd)
	m, l := grow(&s.m, blocks*queryBlock), grow(&s.l, blocks*queryBlock)
	alpha := grow(&s.alpha, queryBlock)
	k, v := grow(&s.k, keyBlock*hd), grow(&s.v, gemm.Packed(keyBlock, hd))
	sc := grow(&s.s, keyBlock*queryBlock)
	for b := range blocks {
		t := b * queryBlock
		gemm.PackCols(q[b*panel:], f.q.at(f.from-f.first+t), f.q.width, hd, min(queryBlock, n-t))
	}
	clear(o[:n*hd])
	clear(l)
	vec.Fill(m, float32(math.Inf(-1)))

	lo, _ := f.visible(f.from, f.keys)
	_, hi := f.visible(f.to-1, f.keys)
	for j := lo / keyBlock * keyBlock; j < hi; j += keyBlock {
		nk := min(keyBlock, f.keys-j)
		gemm.Transpose(k, keyBlock, f.k.at(j), f.k.width, hd, nk)
		gemm.PackRows(v, f.v.at(j), f.v.width, nk, hd)
		for b := range blocks {
			t := b * queryBlock
			nq := min(queryBlock, n-t)
			if !f.meet(f.from+t, nq, j, nk) {
				continue
			}
			s.tile.Block(nk, queryBlock, hd, sc, queryBlock, false, k, keyBlock, q[b*panel:])
			scale := f.capScores(sc[:nk*queryBlock])
			f.hide(sc, f.from+t, nq, j, nk)
			vec.SoftmaxColumns(sc, queryBlock, nk, m[t:t+queryBlock], l[t:t+queryBlock], alpha[:queryBlock], scale)
			ob := o[t*hd:]
			for i := range nq {
				if alpha[i] != 1 {
					row := ob[i*hd:][:hd]
					vec.Scale(row, row, alpha[i])
				}
			}
			s.tile.Block(nq, hd, nk, ob, hd, true, sc, queryBlock, v)
		}
	}
	for i := range n {
		vec.Scale(f.y.at(f.from - f.first + i)[:hd], o[i*hd:], 1/l[i])
		if f.lse.data != nil {
			f.lse.at(f.from + i)[0] = m[i] + float32(math.Log(float64(l[i])))
		}
	}
}

// capScores applies the soft cap; it returns the scale that is still to be applied.
func (g *geom) capScores(s []float32) float32 {
	if g.cap <= 0 {
		return g.scale
	}
	vec.Scale(s, s, g.scale)
	vec.Softcap(s, s, g.cap)
	return 1
}

// meet reports whether any of nq queries from t sees any of nk keys from j.
func (g *geom) meet(t, nq, j, nk int) bool {
	lo, _ := g.visible(t, math.MaxInt)
	_, hi := g.visible(t+nq-1, math.MaxInt)
	return j < hi && j+nk > lo
}

// hide makes invisible scores -Inf. Key u is seen by an interval of queries.
func (g *geom) hide(s []float32, t, nq, j, nk int) {
	inf := float32(math.Inf(-1))
	for u := j; u < j+nk; u++ {
		from, to := 0, queryBlock
		if g.causal {
			from = u - t
		} else if g.window > 0 {
			from = u - g.window + 1 - t
		}
		if g.window > 0 {
			to = u + g.window - t
		}
		row := s[(u-j)*queryBlock:][:queryBlock]
		if from > 0 {
			vec.Fill(row[:min(from, queryBlock)], inf)
		}
		if to < queryBlock {
			vec.Fill(row[max(to, 0):], inf)
		}
	}
}
