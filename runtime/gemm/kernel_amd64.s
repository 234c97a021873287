#include "go_asm.h"
#include "textflag.h"

// Micro-kernels: C tile = src tile + sum over k of (column k of A) x (row k of B).
//
// A row of B is one panel row: two vectors. Each scalar of A is broadcast from memory and
// multiplied with both, so a tile of r rows holds 2r sums in registers. Registers:
//
//	AX  A, moves by R13 bytes a term     BX  B, moves by one panel row
//	CX  terms left                       R8  C, R10 bytes a row
//	R9  src, R11 bytes a row             R12 rows to store

#define LOAD \
	MOVQ t+0(FP), DI; \
	MOVQ tile_k(DI), CX; \
	MOVQ tile_a(DI), AX; \
	MOVQ tile_b(DI), BX; \
	MOVQ tile_c(DI), R8; \
	MOVQ tile_src(DI), R9; \
	MOVQ tile_lda(DI), R13; \
	MOVQ tile_ldc(DI), R10; \
	MOVQ tile_lds(DI), R11; \
	MOVQ tile_rows(DI), R12; \
	MOVQ R8, DX; \
	MOVQ R9, SI

// Rows of C and src come from the second-level cache: ask for them before the sum.
#define FETCH \
	PREFETCHT0 (DX); \
	PREFETCHT0 64(DX); \
	PREFETCHT0 (SI); \
	PREFETCHT0 64(SI); \
	ADDQ R10, DX; \
	ADDQ R11, SI

// AVX-512: rows of 32 columns; K1 and K2 mask the columns of C.

#define MASKS \
	MOVQ tile_mask(DI), DX; \
	KMOVW DX, K1; \
	SHRQ $16, DX; \
	KMOVW DX, K2

#define ZERO(a, b) \
	VPXORQ a, a, a; \
	VPXORQ b, b, b

#define PANEL \
	VMOVUPS (BX), Z30; \
	VMOVUPS 64(BX), Z31

#define ROW(off, t, a, b) \
	VBROADCASTSS off(AX), t; \
	VFMADD231PS Z30, t, a; \
	VFMADD231PS Z31, t, b

#define NEXT(label) \
	ADDQ R13, AX; \
	ADDQ $128, BX; \
	DECQ CX; \
	JNZ label

#define STORE(a, b) \
	VMOVUPS.Z (R9), K1, Z28; \
	VMOVUPS.Z 64(R9), K2, Z29; \
	VADDPS Z28, a, a; \
	VADDPS Z29, b, b; \
	VMOVUPS a, K1, (R8); \
	VMOVUPS b, K2, 64(R8); \
	ADDQ R10, R8; \
	ADDQ R11, R9; \
	DECQ R12; \
	JZ done

// A tile's share of A is new to the first-level cache, and the first time around to the second:
// it is asked for some seventy terms ahead.
#define AHEAD 4096

// func kernel14x32(t *tile)
TEXT ·kernel14x32(SB), NOSPLIT, $0-8
	LOAD
	FETCH
	FETCH
	FETCH
	FETCH
	FETCH
	FETCH
	FETCH
	FETCH
	FETCH
	FETCH
	FETCH
	FETCH
	FETCH
	FETCH
	MASKS
	ZERO(Z0, Z1)
	ZERO(Z2, Z3)
	ZERO(Z4, Z5)
	ZERO(Z6, Z7)
	ZERO(Z8, Z9)
	ZERO(Z10, Z11)
	ZERO(Z12, Z13)
	ZERO(Z14, Z15)
	ZERO(Z16, Z17)
	ZERO(Z18, Z19)
	ZERO(Z20, Z21)
	ZERO(Z22, Z23)
	ZERO(Z24, Z25)
	ZERO(Z26, Z27)
loop:
	PANEL
	PREFETCHT0 AHEAD(AX)
	ROW(0, Z28, Z0, Z1)
	ROW(4, Z29, Z2, Z3)
	ROW(8, Z28, Z4, Z5)
	ROW(12, Z29, Z6, Z7)
	ROW(16, Z28, Z8, Z9)
	ROW(20, Z29, Z10, Z11)
	ROW(24, Z28, Z12, Z13)
	ROW(28, Z29, Z14, Z15)
	ROW(32, Z28, Z16, Z17)
	ROW(36, Z29, Z18, Z19)
	ROW(40, Z28, Z20, Z21)
	ROW(44, Z29, Z22, Z23)
	ROW(48, Z28, Z24, Z25)
	ROW(52, Z29, Z26, Z27)
	NEXT(loop)
	STORE(Z0, Z1)
	STORE(Z2, Z3)
	STORE(Z4, Z5)
	STORE(Z6, Z7)
	STORE(Z8, Z9)
	STORE(Z10, Z11)
	STORE(Z12, Z13)
	STORE(Z14, Z15)
	STORE(Z16, Z17)
	STORE(Z18, Z19)
	STORE(Z20, Z21)
	STORE(Z22, Z23)
	STORE(Z24, Z25)
	STORE(Z26, Z27)
done:
	VZEROUPPER
	RET

// func kernel8x32(t *tile)
TEXT ·kernel8x32(SB), NOSPLIT, $0-8
	LOAD
	MASKS
	ZERO(Z0, Z1)
	ZERO(Z2, Z3)
	ZERO(Z4, Z5)
	ZERO(Z6, Z7)
	ZERO(Z8, Z9)
	ZERO(Z10, Z11)
	ZERO(Z12, Z13)
	ZERO(Z14, Z15)
loop:
	PANEL
	ROW(0, Z28, Z0, Z1)
	ROW(4, Z29, Z2, Z3)
	ROW(8, Z28, Z4, Z5)
	ROW(12, Z29, Z6, Z7)
	ROW(16, Z28, Z8, Z9)
	ROW(20, Z29, Z10, Z11)
	ROW(24, Z28, Z12, Z13)
	ROW(28, Z29, Z14, Z15)
	NEXT(loop)
	STORE(Z0, Z1)
	STORE(Z2, Z3)
	STORE(Z4, Z5)
	STORE(Z6, Z7)
	STORE(Z8, Z9)
	STORE(Z10, Z11)
	STORE(Z12, Z13)
	STORE(Z14, Z15)
done:
	VZEROUPPER
	RET

// func kernel4x32(t *tile)
TEXT ·kernel4x32(SB), NOSPLIT, $0-8
	LOAD
	MASKS
	ZERO(Z0, Z1)
	ZERO(Z2, Z3)
	ZERO(Z4, Z5)
	ZERO(Z6, Z7)
loop:
	PANEL
	ROW(0, Z28, Z0, Z1)
	ROW(4, Z29, Z2, Z3)
	ROW(8, Z28, Z4, Z5)
	ROW(12, Z29, Z6, Z7)
	NEXT(loop)
	STORE(Z0, Z1)
	STORE(Z2, Z3)
	STORE(Z4, Z5)
	STORE(Z6, Z7)
done:
	VZEROUPPER
	RET

// func kernel1x32(t *tile)
TEXT ·kernel1x32(SB), NOSPLIT, $0-8
	LOAD
	MASKS
	ZERO(Z0, Z1)
loop:
	PANEL
	ROW(0, Z28, Z0, Z1)
	NEXT(loop)
	STORE(Z0, Z1)
done:
	VZEROUPPER
	RET

// AVX2: rows of 16 columns, always whole.

#define ZERO8(a, b) \
	VXORPS a, a, a; \
	VXORPS b, b, b

#define PANEL8 \
	VMOVUPS (BX), Y14; \
	VMOVUPS 32(BX), Y15

#define ROW8(off, t, a, b) \
	VBROADCASTSS off(AX), t; \
	VFMADD231PS Y14, t, a; \
	VFMADD231PS Y15, t, b

#define NEXT8(label) \
	ADDQ R13, AX; \
	ADDQ $64, BX; \
	DECQ CX; \
	JNZ label

#define STORE8(a, b) \
	VADDPS (R9), a, a; \
	VADDPS 32(R9), b, b; \
	VMOVUPS a, (R8); \
	VMOVUPS b, 32(R8); \
	ADDQ R10, R8; \
	ADDQ R11, R9; \
	DECQ R12; \
	JZ done

// func kernel6x16(t *tile)
TEXT ·kernel6x16(SB), NOSPLIT, $0-8
	LOAD
	FETCH
	FETCH
	FETCH
	FETCH
	FETCH
	FETCH
	ZERO8(Y0, Y1)
	ZERO8(Y2, Y3)
	ZERO8(Y4, Y5)
	ZERO8(Y6, Y7)
	ZERO8(Y8, Y9)
	ZERO8(Y10, Y11)
loop:
	PANEL8
	ROW8(0, Y12, Y0, Y1)
	ROW8(4, Y13, Y2, Y3)
	ROW8(8, Y12, Y4, Y5)
	ROW8(12, Y13, Y6, Y7)
	ROW8(16, Y12, Y8, Y9)
	ROW8(20, Y13, Y10, Y11)
	NEXT8(loop)
	STORE8(Y0, Y1)
	STORE8(Y2, Y3)
	STORE8(Y4, Y5)
	STORE8(Y6, Y7)
	STORE8(Y8, Y9)
	STORE8(Y10, Y11)
done:
	VZEROUPPER
	RET

// func kernel1x16(t *tile)
TEXT ·kernel1x16(SB), NOSPLIT, $0-8
	LOAD
	ZERO8(Y0, Y1)
loop:
	PANEL8
	ROW8(0, Y12, Y0, Y1)
	NEXT8(loop)
	STORE8(Y0, Y1)
done:
	VZEROUPPER
	RET
