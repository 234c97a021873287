package squares

import (
	"math"
	"sync"
	"unsafe"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/vec"
)

// row is the elements of a block that are added side by side, and threads, final and warp how a GPU's
// threads then add those: squares.cu has the same order, so that both give the same bits.
const (
	row     = 1 << 10
	threads = 256
	final   = 1 << 10 // threads that add the blocks
	warp    = 32
)

var rows = sync.Pool{New: func() any { return new([row]float64) }}

// OfBlock is the sum of squares of a block.
func OfBlock(g []float32) float64 {
	acc := rows.Get().(*[row]float64) // on the heap, as the loop is called through a pointer
	defer rows.Put(acc)
	clear(acc[:])
	for len(g) > 0 {
		n := min(len(g), row)
		vec.AddSquares(acc[:], g[:n])
		g = g[n:]
	}
	var of [threads]float64
	for t := range of {
		a := acc[4*t:]
		of[t] = (a[0] + a[1]) + (a[2] + a[3])
	}
	return threadsSum(of[:])
}

// threadsSum is mtc.cuh's block_sum: a tree within each warp, then the warps in order.
func threadsSum(of []float64) float64 {
	var sum float64
	for w := 0; w < len(of); w += warp {
		for k := warp / 2; k > 0; k /= 2 {
			for i := range k {
				of[w+i] += of[w+i+k]
			}
		}
		if w == 0 {
			sum = of[0]
		} else {
			sum += of[w]
		}
	}
	return sum
}

func partsCPU(c device.CPU, a *device.Args) {
	n := a.I[0]
	g, parts := c.F32(a.P[0], n), c.F64(a.P[1], plan.SquaresBlocks(n))
	first, second := a.I[2], a.I[4]
	c.Parallel(first+second, 1, func(lo, hi int64) {
		for i := lo; i < hi; i++ {
			b := a.I[1] + i
			if i >= first {
				b = a.I[3] + i - first
			}
			parts[b] = OfBlock(g[b*Block : min((b+1)*Block, n)])
		}
	})
}

func totalCPU(c device.CPU, a *device.Args) {
	var of [final]float64
	for i, p := range c.F64(a.P[0], plan.SquaresBlocks(a.I[0])) {
		of[i%final] += p
	}
	sum := threadsSum(of[:])
	c.F64(a.P[1], 1)[0] = sum
	if !a.P[2].Nil() && (math.IsNaN(sum) || math.IsInf(sum, 0)) {
		c.F64(a.P[2], plan.NumScalars)[plan.ScalarSkip] = 1
	}
}

// ToHalf is the bf16 nearest to x, ties to even.
func ToHalf(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 0x40 // stays NaN whatever its lower bits are
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

var blocks = sync.Pool{New: func() any { return new([Block]float32) }}

func roundCPU(c device.CPU, a *device.Args) {
	n := a.I[0]
	g, parts := c.F32(a.P[0], n), c.F64(a.P[1], plan.SquaresBlocks(n))
	words := c.I32(a.P[2], n/2)
	half := unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(words))), n)
	c.Parallel(int64(len(parts)), 1, func(lo, hi int64) {
		rounded := blocks.Get().(*[Block]float32)
		defer blocks.Put(rounded)
		for b := lo; b < hi; b++ {
			start, end := b*Block, min((b+1)*Block, n)
			for i, x := range g[start:end] {
				h := ToHalf(x)
				half[start+int64(i)], rounded[i] = h, math.Float32frombits(uint32(h)<<16)
			}
			parts[b] = OfBlock(rounded[:end-start])
		}
	})
}
