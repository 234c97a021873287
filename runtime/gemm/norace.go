//go:build !race

package gemm

func (j *job) announce(m0, m1, n0, n1 int) {}
