// Package gemm multiplies float32 matrices for the linear op: y = x W^T and its two gradients.
// Matrices are row-major without gaps. Work is cut over CPU.Parallel.
//
// Order of additions. The sum over k of one element of C is taken in blocks of kc terms; each
// block is summed in order of k from zero, and the blocks are added to C in order. The order
// depends on k only: not on the element's place, nor on the other dims, nor on threads. So a
// row of C has the same bits however many rows are computed with it.
package gemm

// Parallel is the part of device.CPU that this package needs.
type Parallel interface {
	// Parallel calls body for disjoint ranges that cover [0, n).
	Parallel(n, grain int64, body func(lo, hi int64))
}

// NT is C[m,n] = add + A[m,k] B[n,k]^T + bias: the forward of a linear layer, x [m,k] by
// weight [n,k]. add [m,n] may be nil, or c itself; bias [n] may be nil.
func NT(p Parallel, m, n, k int, c, a, b, add, bias []float32) {
	run(p, job{m: m, n: n, k: k, c: c, add: add, bias: bias, a: mat{a, k, 1}, b: mat{b, 1, k}})
}

// NN is C[m,n] = add + A[m,k] B[k,n]: the input gradient, dy [m,k] by weight [k,n] (k outputs,
// n inputs). add may be nil, or c itself.
func NN(p Parallel, m, n, k int, c, a, b, add []float32) {
	run(p, job{m: m, n: n, k: k, c: c, add: add, a: mat{a, k, 1}, b: mat{b, n, 1}})
}

// TN is C[m,n] = add + A[k,m]^T B[k,n]: the weight gradient, dy [k,m] (k rows, m outputs) by
// x [k,n]. add may be nil, or c itself.
func TN(p Parallel, m, n, k int, c, a, b, add []float32) {
	run(p, job{m: m, n: n, k: k, c: c, add: add, a: mat{a, 1, m}, b: mat{b, n, 1}})
}

// mat is an operand: element (i, j) is data[i*row + j*col]; row or col is 1.
type mat struct {
	data     []float32
	row, col int
}

// job is one multiplication.
type job struct {
	m, n, k      int
	c, add, bias []float32
	a            mat // [m, k]
	b            mat // [k, n]
}

// kc is the number of terms of a block of the sum over k.
const kc = 256

func run(p Parallel, j job) {
	if j.m == 0 || j.n == 0 {
		return
	}
	p.Parallel(int64(j.m), 1, func(lo, hi int64) {
		for i := int(lo); i < int(hi); i++ {
			c := j.c[i*j.n:][:j.n]
			for x := range c {
				var s float32
				if j.add != nil {
					s = j.add[i*j.n+x]
				}
				if j.bias != nil {
					s += j.bias[x]
				}
				for k0 := 0; k0 < j.k; k0 += kc {
					var t float32
					for k := k0; k < min(k0+kc, j.k); k++ {
						t = float32(float64(j.a.data[i*j.a.row+k*j.a.col])*float64(j.b.data[k*j.b.row+x*j.b.col]) + float64(t))
					}
					s += t
				}
				c[x] = s
			}
		}
	})
}
