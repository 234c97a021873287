// Package loops holds the loops that the ops' CPU kernels share: elementwise maps and sums
// over rows, cut over device.CPU.Parallel so that results never depend on the number of
// threads or on how a range was cut. The arithmetic inside them is runtime/vec's.
package loops

import (
	"sync"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/inuse"
	"github.com/megatrain/mtc/runtime/vec"
)

// grain is the number of elements that are worth a hand-over to another thread; a multiple
// of every vector width.
const grain = 8192

// Elements calls body for ranges that cover n elements.
func Elements(c device.CPU, n int64, body func(lo, hi int64)) { c.Parallel(n, grain, body) }

// Rows calls body for ranges that cover rows of width elements each.
func Rows(c device.CPU, rows, width int64, body func(lo, hi int64)) {
	c.Parallel(rows, max(1, grain/2/max(width, 1)), body)
}

// Map runs y = f(x). Operands: P = {X, Y}; I[0] rows of I[1] elements.
func Map(c device.CPU, a *device.Args, f func(dst, x []float32)) {
	n := inuse.Elements(c, a)
	x, y := c.F32(a.P[0], n), c.F32(a.P[1], n)
	Elements(c, n, func(lo, hi int64) { f(y[lo:hi], x[lo:hi]) })
}

// Map2 runs y = f(a, b). Operands: P = {A, B, Y}; I[0] rows of I[1] elements.
func Map2(c device.CPU, args *device.Args, f func(dst, a, b []float32)) {
	n := inuse.Elements(c, args)
	a, b, y := c.F32(args.P[0], n), c.F32(args.P[1], n), c.F32(args.P[2], n)
	Elements(c, n, func(lo, hi int64) { f(y[lo:hi], a[lo:hi], b[lo:hi]) })
}

// MapGrad runs dx = add + f(dy, x); f gets a nil add when there is none, and a nil x when
// the gradient needs none. Operands: P = {X, DY, AddDX, DX}; I[0] rows of I[1] elements.
func MapGrad(c device.CPU, a *device.Args, f func(dst, add, dy, x []float32)) {
	n := inuse.Elements(c, a)
	x, dy, add, dx := c.F32(a.P[0], n), c.F32(a.P[1], n), c.F32(a.P[2], n), c.F32(a.P[3], n)
	Elements(c, n, func(lo, hi int64) { f(dx[lo:hi], Slice(add, lo, hi), dy[lo:hi], Slice(x, lo, hi)) })
}

// blockElems is how many elements MapGradBlocks hands to f at once: all its operands stay in
// the first-level cache.
const blockElems = 1024

// MapGradBlocks is MapGrad for an f of several steps: it works block by block and has
// scratch memory t of the block's size.
func MapGradBlocks(c device.CPU, a *device.Args, f func(dst, add, dy, x, t []float32)) {
	n := inuse.Elements(c, a)
	x, dy, add, dx := c.F32(a.P[0], n), c.F32(a.P[1], n), c.F32(a.P[2], n), c.F32(a.P[3], n)
	Elements(c, n, func(lo, hi int64) {
		scratch := Floats(blockElems)
		defer scratch.Free()
		for i := lo; i < hi; i += blockElems {
			j := min(i+blockElems, hi)
			f(dx[i:j], Slice(add, i, j), dy[i:j], Slice(x, i, j), scratch.F[:j-i])
		}
	})
}

// Slice is s[lo:hi], and nil for an absent operand.
func Slice(s []float32, lo, hi int64) []float32 {
	if s == nil {
		return nil
	}
	return s[lo:hi]
}

// Blocks of rows that SumRows sums one by one. Their number depends on the rows alone.
const (
	blockRows = 64 // at least this many rows a block
	maxBlocks = 64
)

// SumRows runs dst = add + the sum over rows of what row adds, for weight gradients. row
// adds the share of row r (of at least one row) to acc, which has width elements, a multiple of len(dst): the sum
// is also taken over the width/len(dst) groups. add may be nil, or dst itself.
//
// The rows are cut into blocks by their number alone; each block is summed in order and the
// blocks are added as a tree, which also keeps rounding errors small.
func SumRows(c device.CPU, rows, width int64, dst, add []float32, row func(acc []float32, r int64)) {
	per := max(blockRows, (rows+maxBlocks-1)/maxBlocks)
	blocks := (rows + per - 1) / per
	scratch := Floats(blocks * width)
	defer scratch.Free()
	sums := scratch.F
	c.Parallel(blocks, 1, func(lo, hi int64) {
		for b := lo; b < hi; b++ {
			acc := sums[b*width : (b+1)*width]
			clear(acc)
			for r := b * per; r < min((b+1)*per, rows); r++ {
				row(acc, r)
			}
		}
	})
	fold(c, sums, blocks, width)
	fold(c, sums[:width], width/int64(len(dst)), int64(len(dst)))
	vec.AddTo(dst, add, sums[:len(dst)])
}

// fold adds n vectors of width elements into the first one, halving their number each time.
func fold(c device.CPU, sums []float32, n, width int64) {
	for n > 1 {
		half := (n + 1) / 2
		to, from := sums[:(n-half)*width], sums[half*width:n*width]
		Elements(c, (n-half)*width, func(lo, hi int64) { vec.Add(to[lo:hi], to[lo:hi], from[lo:hi]) })
		n = half
	}
}

// Scratch is memory for the length of one kernel. Its contents are undefined at first.
type Scratch struct{ F []float32 }

var scratches = sync.Pool{New: func() any { return new(Scratch) }}

// Floats returns n float32; Free gives them back.
func Floats(n int64) *Scratch {
	s := scratches.Get().(*Scratch)
	if int64(cap(s.F)) < n {
		s.F = make([]float32, n)
	}
	s.F = s.F[:n]
	return s
}

// Free gives the memory back; it must not be used afterwards.
func (s *Scratch) Free() { scratches.Put(s) }
