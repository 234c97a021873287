package hf

import (
	"encoding/binary"
	"math"
	"math/big"
	"testing"
)

// Every half and every bfloat16 becomes an f32 and comes back as the same bits, NaNs with
// their payload included.
func TestSixteenBitsComeBackBitForBit(t *testing.T) {
	for _, dtype := range []string{"F16", "BF16"} {
		raw, back := make([]byte, 2<<16), make([]byte, 2<<16)
		for i := range 1 << 16 {
			binary.LittleEndian.PutUint16(raw[2*i:], uint16(i))
		}
		v := make([]float32, 1<<16)
		decode(v, raw, dtype)
		if n := encode(back, v, dtype); n != 0 {
			t.Errorf("%s: %d values count as overflows", dtype, n)
		}
		for i := range 1 << 16 {
			if got := binary.LittleEndian.Uint16(back[2*i:]); got != uint16(i) {
				t.Fatalf("%s: %#04x comes back as %#04x", dtype, i, got)
			}
		}
	}
}

func TestHalvesAreWhatTheyMean(t *testing.T) {
	for h := range 1 << 15 {
		exp, mant := h>>10, h&0x3ff
		want := math.Ldexp(float64(mant), -24)
		switch {
		case exp == 31 && mant != 0:
			continue
		case exp == 31:
			want = math.Inf(1)
		case exp > 0:
			want = math.Ldexp(float64(1024+mant), exp-25)
		}
		if got := float64(math.Float32frombits(halfBits(uint16(h)))); got != want {
			t.Fatalf("%#04x is %g, not %g", h, got, want)
		}
		if got := float64(math.Float32frombits(halfBits(uint16(h | 0x8000)))); got != -want || math.Signbit(got) != true {
			t.Fatalf("%#04x is %g, not %g", h|0x8000, got, -want)
		}
	}
}

// Between two neighbours a value goes to the nearer one, from the middle to the even one.
func TestRoundingIsToNearestEven(t *testing.T) {
	for _, c := range []struct {
		dtype string
		to    func(uint32) uint16
		bits  func(uint16) uint32
		last  uint16 // the largest finite one
	}{
		{"F16", toHalf, halfBits, 0x7bff},
		{"BF16", toBF16, func(h uint16) uint32 { return uint32(h) << 16 }, 0x7f7f},
	} {
		for h := uint16(0); h < c.last; h++ {
			lo, hi := math.Float32frombits(c.bits(h)), math.Float32frombits(c.bits(h+1))
			sum := new(big.Float).Add(big.NewFloat(float64(lo)), big.NewFloat(float64(hi)))
			half, _ := sum.Quo(sum, big.NewFloat(2)).Float64()
			mid := float32(half) // exact: both have 11 bits or fewer
			even := h + h&1
			for _, x := range []struct {
				v    float32
				want uint16
			}{{mid, even}, {math.Nextafter32(mid, lo), h}, {math.Nextafter32(mid, hi), h + 1}} {
				if got := c.to(math.Float32bits(x.v)); got != x.want {
					t.Fatalf("%s: %g goes to %#04x, not %#04x", c.dtype, x.v, got, x.want)
				}
				if got := c.to(math.Float32bits(-x.v)); got != x.want|0x8000 {
					t.Fatalf("%s: %g goes to %#04x, not %#04x", c.dtype, -x.v, got, x.want|0x8000)
				}
			}
		}
	}
}

func TestOverflowIsCountedAndNaNStays(t *testing.T) {
	raw := make([]byte, 8)
	if n := encode(raw, []float32{65519, 65520, -1e9, float32(math.Inf(1))}, "F16"); n != 2 {
		t.Errorf("%d overflows, 65520 and -1e9 are two", n)
	}
	if got := binary.LittleEndian.Uint16(raw); got != 0x7bff {
		t.Errorf("65519 is %#04x", got)
	}
	if n := encode(raw, []float32{math.MaxFloat32}, "BF16"); n != 1 {
		t.Errorf("%d overflows of bfloat16", n)
	}
	for _, bits := range []uint32{0x7f800001, 0xff800001, 0x7fc00000, 0x7f801000} { // payloads in the lower bits alone too
		if h := toHalf(bits); h&0x7c00 != 0x7c00 || h&0x3ff == 0 {
			t.Errorf("the NaN %#08x is the half %#04x", bits, h)
		}
		if h := toBF16(bits); h&0x7f80 != 0x7f80 || h&0x7f == 0 {
			t.Errorf("the NaN %#08x is the bfloat16 %#04x", bits, h)
		}
	}
}
