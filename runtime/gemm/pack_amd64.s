#include "textflag.h"

// AVX-512 data movement of the packing loops.

// func copyRows(k int, src *float32, lds int, dst *float32, ldd int, load, store uint64)
//
// Copies k rows of up to 32 floats from src, lds bytes apart, to dst, ldd bytes apart. Bits
// of load tell which floats exist (others become 0), bits of store which are written.
TEXT ·copyRows(SB), NOSPLIT, $0-56
	MOVQ k+0(FP), CX
	MOVQ src+8(FP), SI
	MOVQ lds+16(FP), R8
	MOVQ dst+24(FP), DI
	MOVQ ldd+32(FP), R9
	MOVQ load+40(FP), AX
	MOVQ store+48(FP), BX
	KMOVW AX, K1
	KMOVW BX, K3
	SHRQ $16, AX
	SHRQ $16, BX
	KMOVW AX, K2
	KMOVW BX, K4
row:
	VMOVUPS.Z (SI), K1, Z0
	VMOVUPS.Z 64(SI), K2, Z1
	VMOVUPS Z0, K3, (DI)
	VMOVUPS Z1, K4, 64(DI)
	ADDQ R8, SI
	ADDQ R9, DI
	DECQ CX
	JNZ row
	VZEROUPPER
	RET

// func copyPanels(k int, src *float32, lds int, dst *float32, width, panels int)
//
// Copies k rows of panels*width floats from src, lds bytes apart, to panels [k][width] that
// follow each other; width is 14 or 32.
TEXT ·copyPanels(SB), NOSPLIT, $0-48
	MOVQ k+0(FP), CX
	MOVQ src+8(FP), SI
	MOVQ lds+16(FP), R8
	MOVQ dst+24(FP), DI
	MOVQ width+32(FP), R9
	SHLQ $2, R9
	MOVQ CX, R10
	IMULQ R9, R10 // bytes of a panel
	MOVL $0x3fff, AX
	KMOVW AX, K1
	CMPQ R9, $128
	JEQ wide
narrow:
	MOVQ SI, AX
	MOVQ DI, BX
	MOVQ panels+40(FP), DX
panel:
	VMOVUPS.Z (AX), K1, Z0
	VMOVUPS Z0, K1, (BX)
	ADDQ R9, AX
	ADDQ R10, BX
	DECQ DX
	JNZ panel
	ADDQ R8, SI
	ADDQ R9, DI
	DECQ CX
	JNZ narrow
	VZEROUPPER
	RET
wide:
	MOVQ SI, AX
	MOVQ DI, BX
	MOVQ panels+40(FP), DX
widePanel:
	VMOVUPS (AX), Z0
	VMOVUPS 64(AX), Z1
	VMOVUPS Z0, (BX)
	VMOVUPS Z1, 64(BX)
	ADDQ R9, AX
	ADDQ R10, BX
	DECQ DX
	JNZ widePanel
	ADDQ R8, SI
	ADDQ R9, DI
	DECQ CX
	JNZ wide
	VZEROUPPER
	RET

#define PAIR(a, b, lo, hi) \
	VUNPCKLPS b, a, lo; \
	VUNPCKHPS b, a, hi

#define QUAD(a, b, c, d, p, q, r, s) \
	VUNPCKLPD c, a, p; \
	VUNPCKHPD c, a, q; \
	VUNPCKLPD d, b, r; \
	VUNPCKHPD d, b, s

// Columns c, c+4, c+8 and c+12 from the four row groups of column c.
#define LANES(a, b, c, d, p, q, r, s) \
	VSHUFF32X4 $0x88, b, a, Z16; \
	VSHUFF32X4 $0xdd, b, a, Z17; \
	VSHUFF32X4 $0x88, d, c, Z18; \
	VSHUFF32X4 $0xdd, d, c, Z19; \
	VSHUFF32X4 $0x88, Z18, Z16, p; \
	VSHUFF32X4 $0x88, Z19, Z17, q; \
	VSHUFF32X4 $0xdd, Z18, Z16, r; \
	VSHUFF32X4 $0xdd, Z19, Z17, s

// A row that does not exist repeats the one before; its lane is not stored.
#define ROW(z) \
	VMOVUPS.Z (AX), K2, z; \
	LEAQ (AX)(R8*1), BX; \
	DECQ DX; \
	CMOVQGT BX, AX

#define OUT(z) \
	VMOVUPS z, K1, (DI); \
	ADDQ R9, DI; \
	DECQ CX; \
	JZ done

// func transpose(k int, src *float32, lds int, dst *float32, ldd int, rows int)
//
// dst[i][r] = src[r][i] for i < k, r < rows <= 16; rows of src are lds bytes apart, rows of
// dst ldd. It reads and writes nothing else.
TEXT ·transpose(SB), NOSPLIT, $0-48
	MOVQ k+0(FP), CX
	MOVQ src+8(FP), SI
	MOVQ lds+16(FP), R8
	MOVQ dst+24(FP), DI
	MOVQ ldd+32(FP), R9
	MOVQ rows+40(FP), R10
	MOVQ CX, R11
	MOVL $0xffff, R12
	KMOVW R12, K2
	MOVQ R10, CX
	MOVL $1, R13
	SHLQ CX, R13
	DECQ R13
	KMOVW R13, K1
	MOVQ R11, CX
block:
	CMPQ CX, $16
	JGE whole
	MOVL $1, R13
	SHLQ CX, R13
	DECQ R13
	KMOVW R13, K2
whole:
	MOVQ SI, AX
	MOVQ R10, DX
	ROW(Z0)
	ROW(Z1)
	ROW(Z2)
	ROW(Z3)
	ROW(Z4)
	ROW(Z5)
	ROW(Z6)
	ROW(Z7)
	ROW(Z8)
	ROW(Z9)
	ROW(Z10)
	ROW(Z11)
	ROW(Z12)
	ROW(Z13)
	ROW(Z14)
	ROW(Z15)
	PAIR(Z0, Z1, Z16, Z17)
	PAIR(Z2, Z3, Z18, Z19)
	PAIR(Z4, Z5, Z20, Z21)
	PAIR(Z6, Z7, Z22, Z23)
	PAIR(Z8, Z9, Z24, Z25)
	PAIR(Z10, Z11, Z26, Z27)
	PAIR(Z12, Z13, Z28, Z29)
	PAIR(Z14, Z15, Z30, Z31)
	QUAD(Z16, Z17, Z18, Z19, Z0, Z1, Z2, Z3)
	QUAD(Z20, Z21, Z22, Z23, Z4, Z5, Z6, Z7)
	QUAD(Z24, Z25, Z26, Z27, Z8, Z9, Z10, Z11)
	QUAD(Z28, Z29, Z30, Z31, Z12, Z13, Z14, Z15)
	LANES(Z0, Z4, Z8, Z12, Z20, Z24, Z28, Z0)
	LANES(Z1, Z5, Z9, Z13, Z21, Z25, Z29, Z1)
	LANES(Z2, Z6, Z10, Z14, Z22, Z26, Z30, Z2)
	LANES(Z3, Z7, Z11, Z15, Z23, Z27, Z31, Z3)
	OUT(Z20)
	OUT(Z21)
	OUT(Z22)
	OUT(Z23)
	OUT(Z24)
	OUT(Z25)
	OUT(Z26)
	OUT(Z27)
	OUT(Z28)
	OUT(Z29)
	OUT(Z30)
	OUT(Z31)
	OUT(Z0)
	OUT(Z1)
	OUT(Z2)
	OUT(Z3)
	ADDQ $64, SI
	JMP block
done:
	VZEROUPPER
	RET
