package gemm

func cpuid(leaf, sub uint32) (a, b, c, d uint32)

func xgetbv() uint32

// features says which kernels the processor and the operating system (which must save the
// wide registers) allow. Intel SDM volume 2, CPUID leaves 1 and 7; volume 1, 14.3 and 15.2.
func features() (hasAVX2, hasAVX512 bool) {
	top, _, _, _ := cpuid(0, 0)
	if top < 7 {
		return false, false
	}
	const (
		fma, osxsave       = 1 << 12, 1 << 27              // leaf 1, ecx
		avx2               = 1 << 5                        // leaf 7, ebx
		avx512             = 1<<16 | 1<<17 | 1<<30 | 1<<31 // F, DQ, BW, VL
		ymmState, zmmState = 0x06, 0xe6                    // XCR0
	)
	_, _, c, _ := cpuid(1, 0)
	if c&fma == 0 || c&osxsave == 0 {
		return false, false
	}
	state := xgetbv()
	_, b, _, _ := cpuid(7, 0)
	hasAVX2 = b&avx2 != 0 && state&ymmState == ymmState
	hasAVX512 = hasAVX2 && b&avx512 == avx512 && state&zmmState == zmmState
	return hasAVX2, hasAVX512
}
