//go:build goexperiment.simd && amd64 && !race

package vec

import "simd/archsimd"

// init chooses the implementation. Under the race detector this file is left out: it does not
// see the accesses of vector instructions.
func init() {
	x := archsimd.X86
	if x.AVX2() && x.FMA() {
		machine[AVX2] = &table8
		use(AVX2)
	}
	if x.AVX512() {
		machine[AVX512] = &table16
		use(AVX512)
	}
}
