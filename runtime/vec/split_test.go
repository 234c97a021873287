package vec

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSplitKeepsEveryBit: halves make the same f32 again, whatever it is, and hi is its
// nearest bfloat16.
func TestSplitKeepsEveryBit(t *testing.T) {
	values := []float32{0, float32(math.Copysign(0, -1)), 1, -1, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32,
		float32(math.Inf(1)), float32(math.NaN())}
	for hi := range uint32(1 << 7) {
		for _, lo := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
			for _, exp := range []uint32{0, 1, 127, 254} {
				bits := exp<<23 | hi<<16 | lo
				values = append(values, math.Float32frombits(bits), math.Float32frombits(bits|1<<31))
			}
		}
	}
	hi, lo, back := make([]uint16, len(values)), make([]uint16, len(values)), make([]float32, len(values))
	SplitMasters(hi, lo, values)
	JoinMasters(back, hi, lo)
	for i, x := range values {
		if math.Float32bits(back[i]) != math.Float32bits(x) {
			t.Fatalf("%x came back as %x", math.Float32bits(x), math.Float32bits(back[i]))
		}
		h := math.Float32frombits(uint32(hi[i]) << 16)
		if math.IsInf(float64(h), 0) || x != x {
			continue // rounded past the largest bfloat16, or nothing to compare
		}
		for _, step := range []int32{-1, 1} {
			other := math.Float32frombits(uint32(int32(hi[i])+step) << 16)
			if d, e := math.Abs(float64(x)-float64(h)), math.Abs(float64(x)-float64(other)); e < d {
				t.Fatalf("%v: %v is nearer than %v", x, other, h)
			}
		}
	}
}

// TestSplitStepEqualsStep: masters and moments have the same bits as those of AdamWStep,
// wherever the slice ends.
func TestSplitStepEqualsStep(t *testing.T) {
	onAll(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		k := &AdamW{0.7, 0.9, 0.1, 0.99, 0.01, 0.999, 0.02, 3, 1e-8}
		for _, n := range []int{1, 15, 16, 17, 33, splitBlock, splitBlock + 5} {
			p, m, v := random(r, n), random(r, n), random(r, n)
			Mul(v, v, v)
			hi, lo := make([]uint16, n), make([]uint16, n)
			SplitMasters(hi, lo, p)
			m2, v2 := append([]float32(nil), m...), append([]float32(nil), v...)
			for range 5 {
				g := random(r, n)
				AdamWStep(p, g, m, v, k)
				AdamWSplitStep(hi, lo, g, m2, v2, k)
			}
			got := make([]float32, n)
			JoinMasters(got, hi, lo)
			for i := range p {
				if got[i] != p[i] || m[i] != m2[i] || v[i] != v2[i] {
					t.Fatalf("%d elements: element %d is %v, %v, %v; want %v, %v, %v", n, i, got[i], m2[i], v2[i], p[i], m[i], v[i])
				}
			}
		}
	})
}
