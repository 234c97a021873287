package hf

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// decode converts len(dst) little-endian numbers of a dtype to f32, on a machine that is
// little-endian too. Each is exact, the bits of a NaN included.
func decode(dst []float32, raw []byte, dtype string) {
	if len(dst) == 0 {
		return
	}
	switch dtype {
	case "F32":
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&dst[0])), 4*len(dst)), raw)
	case "BF16":
		raw = raw[:2*len(dst)]
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(raw[2*i])<<16 | uint32(raw[2*i+1])<<24)
		}
	case "F16":
		for i := range dst {
			dst[i] = math.Float32frombits(halfBits(binary.LittleEndian.Uint16(raw[2*i:])))
		}
	}
}

// encode converts f32 to a dtype, to nearest with ties to even; what has been decoded comes
// back bit for bit. It returns how many finite values the dtype has no room for.
func encode(raw []byte, src []float32, dtype string) (overflow int64) {
	switch dtype {
	case "F32":
		for i, x := range src {
			binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(x))
		}
	case "BF16":
		for i, x := range src {
			b := toBF16(math.Float32bits(x))
			if b&0x7fff == 0x7f80 && math.Float32bits(x)&0x7fffffff < 0x7f800000 {
				overflow++
			}
			binary.LittleEndian.PutUint16(raw[2*i:], b)
		}
	case "F16":
		for i, x := range src {
			b := toHalf(math.Float32bits(x))
			if b&0x7fff == 0x7c00 && math.Float32bits(x)&0x7fffffff < 0x7f800000 {
				overflow++
			}
			binary.LittleEndian.PutUint16(raw[2*i:], b)
		}
	}
	return overflow
}

// width is the bytes of an element of the dtypes that weights may have, 0 for others.
func width(dtype string) int64 {
	return map[string]int64{"F32": 4, "F16": 2, "BF16": 2}[dtype]
}

// toBF16 rounds the bits of an f32 to a bfloat16. A NaN keeps its upper bits, and stays one.
func toBF16(b uint32) uint16 {
	if b&0x7fffffff > 0x7f800000 {
		if h := uint16(b >> 16); h&0x7f != 0 {
			return h
		}
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// halfBits are the bits of the f32 that equals a half.
func halfBits(h uint16) uint32 {
	sign, exp, mant := uint32(h&0x8000)<<16, uint32(h>>10&31), uint32(h&0x3ff)
	switch {
	case exp == 31:
		return sign | 0x7f800000 | mant<<13
	case exp > 0:
		return sign | (exp+112)<<23 | mant<<13
	case mant == 0:
		return sign
	}
	e := uint32(113) // subnormal: shift the leading one to its place
	for mant&0x400 == 0 {
		mant <<= 1
		e--
	}
	return sign | e<<23 | (mant&0x3ff)<<13
}

// toHalf rounds the bits of an f32 to a half.
func toHalf(b uint32) uint16 {
	sign, mag := uint16(b>>16&0x8000), b&0x7fffffff
	switch {
	case mag > 0x7f800000:
		if mant := uint16(mag >> 13 & 0x3ff); mant != 0 {
			return sign | 0x7c00 | mant
		}
		return sign | 0x7e00
	case mag >= 0x477ff000: // from half way above the largest half on
		return sign | 0x7c00
	case mag >= 0x38800000: // a normal half
		mag += 0xfff + mag>>13&1
		return sign | uint16((mag-0x38000000)>>13)
	case mag < 0x33000000: // below half of the smallest; half of it itself goes to the even 0
		return sign
	}
	shift := 126 - mag>>23 // 14 to 24
	mant := mag&0x7fffff | 0x800000
	out := mant >> shift
	rest, half := mant&(1<<shift-1), uint32(1)<<(shift-1)
	if rest > half || rest == half && out&1 == 1 {
		out++
	}
	return sign | uint16(out)
}
