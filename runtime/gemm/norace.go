//go:build !race

package gemm

func (j *job) announce(m0, m1, n0, n1 int) {}

func touch(s []float32, ld, rows, cols int, write bool) {}
