//go:build cuda

package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/megatrain/mtc/runtime/device"
)

// matrix is an operand of a test: its values as they are once stored.
type matrix struct {
	p device.Ptr
	v []float32
}

func bf16(x float32) uint16 {
	u := math.Float32bits(x)
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// put makes a random operand of a kind.
func put(t *testing.T, d *Device, rnd *rand.Rand, n int64, kind device.Dtype) matrix {
	t.Helper()
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rnd.NormFloat64())
	}
	if d.opt.F32 || kind == device.GradDtype {
		p := alloc(t, d, device.DeviceMemory, 4*n)
		if err := d.Write(p, unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*n)); err != nil {
			t.Fatal(err)
		}
		return matrix{p, v}
	}
	h := make([]uint16, n)
	for i := range v {
		h[i] = bf16(v[i])
		v[i] = math.Float32frombits(uint32(h[i]) << 16)
	}
	p := alloc(t, d, device.DeviceMemory, 2*n)
	if err := d.Write(p, unsafe.Slice((*byte)(unsafe.Pointer(&h[0])), 2*n)); err != nil {
		t.Fatal(err)
	}
	return matrix{p, v}
}

func get(t *testing.T, d *Device, p device.Ptr, n int64, kind device.Dtype) []float32 {
	t.Helper()
	v := make([]float32, n)
	if d.opt.F32 || kind == device.GradDtype {
		if err := d.Read(unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*n), p); err != nil {
			t.Fatal(err)
		}
		return v
	}
	h := make([]uint16, n)
	if err := d.Read(unsafe.Slice((*byte)(unsafe.Pointer(&h[0])), 2*n), p); err != nil {
		t.Fatal(err)
	}
	for i := range v {
		v[i] = math.Float32frombits(uint32(h[i]) << 16)
	}
	return v
}

// TestParts: products whose contiguous dim is no multiple of 8 are cut, and give what they give
// whole: a vocabulary's three products, with an addend where they have one.
func TestParts(t *testing.T) {
	const rows, in, v, pitch = 24, 16, 1029, 1088
	d := open(t, Options{})
	rnd := rand.New(rand.NewPCG(3, 4))
	x, w, dy := put(t, d, rnd, rows*in, device.ActDtype), put(t, d, rnd, v*in, device.WeightDtype), put(t, d, rnd, rows*pitch, device.ActDtype)
	bias, add, dx := put(t, d, rnd, v, device.WeightDtype), put(t, d, rnd, rows*pitch, device.ActDtype), put(t, d, rnd, rows*in, device.ActDtype)
	dw := put(t, d, rnd, v*in, device.GradDtype)
	term := func(n int, f func(i int) (float32, float32)) (sum, size float64) {
		for i := range n {
			a, b := f(i)
			sum += float64(a) * float64(b)
			size += math.Abs(float64(a) * float64(b))
		}
		return sum, size
	}
	for _, c := range []struct {
		name      string
		m         device.Matmul
		want      func(i, j int) (sum, size float64)
		ld, parts int
	}{
		{"forward", device.Matmul{M: rows, N: v, K: in, A: x.p, B: w.p, TransB: true, Bias: bias.p, C: add.p, D: alloc(t, d, device.DeviceMemory, 2*rows*pitch), LDD: pitch,
			DA: device.ActDtype, DB: device.WeightDtype, DD: device.ActDtype}, func(i, j int) (float64, float64) {
			s, z := term(in, func(k int) (float32, float32) { return x.v[i*in+k], w.v[j*in+k] })
			return s + float64(bias.v[j]) + float64(add.v[i*pitch+j]), z + 2
		}, pitch, 2},
		{"input", device.Matmul{M: rows, N: in, K: v, A: dy.p, LDA: pitch, B: w.p, C: dx.p, D: alloc(t, d, device.DeviceMemory, 2*rows*in),
			DA: device.ActDtype, DB: device.WeightDtype, DD: device.ActDtype}, func(i, j int) (float64, float64) {
			s, z := term(v, func(k int) (float32, float32) { return dy.v[i*pitch+k], w.v[k*in+j] })
			return s + float64(dx.v[i*in+j]), z / 8
		}, in, 2},
		{"weight", device.Matmul{M: v, N: in, K: rows, A: dy.p, LDA: pitch, TransA: true, B: x.p, C: dw.p, D: dw.p,
			DA: device.ActDtype, DB: device.ActDtype, DD: device.GradDtype}, func(i, j int) (float64, float64) {
			s, z := term(rows, func(k int) (float32, float32) { return dy.v[k*pitch+i], x.v[k*in+j] })
			return s + float64(dw.v[i*in+j]), z
		}, in, 2},
		{"an even one", device.Matmul{M: rows, N: 16, K: in, A: x.p, B: w.p, TransB: true, D: alloc(t, d, device.DeviceMemory, 2*rows*16),
			DA: device.ActDtype, DB: device.WeightDtype, DD: device.ActDtype}, func(i, j int) (float64, float64) {
			return term(in, func(k int) (float32, float32) { return x.v[i*in+k], w.v[j*in+k] })
		}, 16, 1},
	} {
		if _, n := d.parts(&c.m); n != c.parts {
			t.Errorf("%s: %d parts, want %d", c.name, n, c.parts)
		}
		d.Queue(device.Compute).Launch(&device.Kernel{Name: c.name, Matmul: func(*device.Args) device.Matmul { return c.m }}, device.Args{})
		if err := d.Sync(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got := get(t, d, c.m.D, (c.m.M-1)*int64(c.ld)+c.m.N, c.m.DD)
		for i := range int(c.m.M) {
			for j := range int(c.m.N) {
				want, size := c.want(i, j)
				if diff := math.Abs(float64(got[i*c.ld+j]) - want); !(diff <= (math.Abs(want)+size)/128) {
					t.Fatalf("%s: [%d, %d] is %v, want %v", c.name, i, j, got[i*c.ld+j], want)
				}
			}
		}
	}
}

// TestMatmul: every layout, with and without C (in place and elsewhere) and bias, for
// activations and for weight gradients, against float64.
func TestMatmul(t *testing.T) {
	const m, n, k = 48, 80, 64
	for _, f32 := range []bool{true, false} {
		d := open(t, Options{F32: f32})
		rnd := rand.New(rand.NewPCG(1, 2))
		worst := 0.0
		for _, out := range []device.Dtype{device.ActDtype, device.GradDtype} {
			for bits := range 16 {
				mm := device.Matmul{M: m, N: n, K: k, TransA: bits&1 > 0, TransB: bits&2 > 0,
					DA: device.ActDtype, DB: device.WeightDtype, DD: out}
				a, b := put(t, d, rnd, m*k, mm.DA), put(t, d, rnd, n*k, mm.DB)
				c, bias := put(t, d, rnd, m*n, out), put(t, d, rnd, n, device.WeightDtype)
				if out == device.GradDtype {
					bias = put(t, d, rnd, n, device.GradDtype)
				}
				mm.A, mm.B, mm.D = a.p, b.p, alloc(t, d, device.DeviceMemory, 4*m*n)
				where := bits >> 2 // 0: no C, 1: C elsewhere, 2: C in place, 3: no C, with bias
				switch where {
				case 1, 2:
					mm.C = c.p
					if where == 2 {
						mm.D = c.p
					}
				case 3:
					mm.Bias = bias.p
				}
				name := fmt.Sprintf("f32=%t out=%d %+v", f32, out, mm)
				d.Queue(device.Compute).Launch(&device.Kernel{Name: "matmul", Matmul: func(*device.Args) device.Matmul { return mm }}, device.Args{})
				if err := d.Sync(); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				got := get(t, d, mm.D, m*n, out)
				tol, twice := 1e-5, 0.0
				if !f32 && out == device.ActDtype {
					tol = 1.0 / 256
					// Some algorithms round the product before they add C or the bias.
					twice = tol
				}
				for i := range m {
					for j := range n {
						var want, size float64
						for x := range k {
							ai, bi := i*k+x, x*n+j
							if mm.TransA {
								ai = x*m + i
							}
							if mm.TransB {
								bi = j*k + x
							}
							want += float64(a.v[ai]) * float64(b.v[bi])
							size += math.Abs(float64(a.v[ai]) * float64(b.v[bi]))
						}
						product := want
						if !mm.C.Nil() {
							want += float64(c.v[i*n+j])
						}
						if !mm.Bias.Nil() {
							want += float64(bias.v[j])
						}
						if want == product {
							product = 0
						}
						allowed := tol*(math.Abs(want)+1e-3) + twice*math.Abs(product) + 1e-5*size
						share := math.Abs(float64(got[i*n+j])-want) / allowed
						if worst = math.Max(worst, share); !(share <= 1) {
							t.Fatalf("%s: [%d, %d] is %v, want %v", name, i, j, got[i*n+j], want)
						}
					}
				}
			}
		}
		t.Logf("f32=%t: largest difference is %.0f %% of the allowance", f32, 100*worst)
	}
}
