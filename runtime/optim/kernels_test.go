package optim

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"unsafe"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cpu"
	"github.com/megatrain/mtc/runtime/ops/squares"
	"github.com/megatrain/mtc/runtime/plan"
)

// bench is a device with memory to put slices in.
type bench struct {
	t testing.TB
	*cpu.Device
	device.Queue
}

func newBench(t testing.TB, threads int) *bench {
	d := cpu.NewWith(cpu.Options{Threads: threads})
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return &bench{t, d, d.Queue(device.Compute)}
}

func (b *bench) sync() {
	b.t.Helper()
	if err := b.Device.Sync(); err != nil {
		b.t.Fatal(err)
	}
}

func put[E float32 | float64](b *bench, s []E) device.Ptr {
	b.t.Helper()
	size := int64(len(s)) * int64(unsafe.Sizeof(*new(E)))
	p, err := b.Alloc(device.DeviceMemory, size)
	if err != nil {
		b.t.Fatal(err)
	}
	copy(view[E](b, p, len(s)), s)
	return p
}

func view[E float32 | float64](b *bench, p device.Ptr, n int) []E {
	return unsafe.Slice((*E)(unsafe.Pointer(unsafe.SliceData(b.View(p, int64(n)*int64(unsafe.Sizeof(*new(E))))))), n)
}

func random(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 0))
	s := make([]float32, n)
	for i := range s {
		s[i] = float32(r.NormFloat64())
	}
	return s
}

// TestAdamWLikeTorch: ten clipped steps of torch.optim.AdamW, with and without decay.
func TestAdamWLikeTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/adamw.json")
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Beta1, Beta2, Eps, Clip float64
		WeightDecay             float64 `json:"weight_decay"`
		Decayed                 int64
		Start                   []float32
		Steps                   []struct {
			LR, Norm     float64
			Grad, Weight []float32
		}
	}
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, 2)
	n := len(f.Start)
	a := AdamWArgs{
		Weight: put(b, f.Start), Grad: put(b, make([]float32, n)), M: put(b, make([]float32, n)), V: put(b, make([]float32, n)),
		Scalars: put(b, make([]float64, plan.NumScalars)), Elems: int64(n), Decay: f.Decayed,
		Beta1: f.Beta1, Beta2: f.Beta2, Eps: f.Eps, WeightDecay: f.WeightDecay,
	}
	norms := put(b, make([]float64, 1))
	partials := put(b, []float64{12, 4})
	s := view[float64](b, a.Scalars, plan.NumScalars)
	for i, step := range f.Steps {
		copy(view[float32](b, a.Grad, n), step.Grad)
		s[plan.ScalarStep], s[plan.ScalarLR], s[plan.ScalarMaxNorm] = float64(i+1), step.LR, f.Clip
		squares.Norm(b, squares.NormArgs{Grad: a.Grad, Parts: norms, Norm: norms, Elems: int64(n)})
		Reduce(b, ReduceArgs{Scalars: a.Scalars, Norms: norms, Partials: partials, NumNorms: 1, NumPartials: 1})
		AdamW(b, a)
		b.sync()
		if d := math.Abs(s[plan.ScalarGradNorm] - step.Norm); d > 1e-6*step.Norm {
			t.Errorf("step %d: norm %v, torch %v", i+1, s[plan.ScalarGradNorm], step.Norm)
		}
		var worst float64
		for j, got := range view[float32](b, a.Weight, n) {
			d := math.Abs(float64(got-step.Weight[j])) / max(math.Abs(float64(step.Weight[j])), 1e-3)
			worst = max(worst, d)
		}
		t.Logf("step %d: largest relative difference %.1e (allowed 1e-5)", i+1, worst)
		if !(worst <= 1e-5) {
			t.Errorf("step %d: weights are %.1e off", i+1, worst)
		}
	}
}

// TestAdamWAnyCut: the bits are the same at any number of threads, and the boundary of decay
// may fall anywhere.
func TestAdamWAnyCut(t *testing.T) {
	const n = 3*adamwGrain + 77
	update := func(threads int, decay int64) []float32 {
		b := newBench(t, threads)
		s := make([]float64, plan.NumScalars)
		s[plan.ScalarStep], s[plan.ScalarLR] = 3, 0.01
		v := random(4, n)
		for i := range v {
			v[i] *= v[i]
		}
		a := AdamWArgs{Weight: put(b, random(1, n)), Grad: put(b, random(2, n)), M: put(b, random(3, n)), V: put(b, v),
			Scalars: put(b, s), Elems: n, Decay: decay, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.5}
		AdamW(b, a)
		b.sync()
		return append([]float32(nil), view[float32](b, a.Weight, n)...)
	}
	all, none := update(1, n), update(1, 0)
	for _, decay := range []int64{0, 5, adamwGrain, adamwGrain + 9, n} {
		for i, got := range update(7, decay) {
			want := all[i]
			if int64(i) >= decay {
				want = none[i]
			}
			if got != want {
				t.Fatalf("decay of %d: element %d is %v, want %v", decay, i, got, want)
			}
		}
	}
}

// TestSkip: with the flag set an update changes nothing, also when the gradient is not finite.
func TestSkip(t *testing.T) {
	b := newBench(t, 2)
	nan := float32(math.NaN())
	s := make([]float64, plan.NumScalars)
	s[plan.ScalarStep], s[plan.ScalarLR], s[plan.ScalarSkip] = 1, 0.1, 1
	a := AdamWArgs{Weight: put(b, []float32{1, 2}), Grad: put(b, []float32{nan, 1}), M: put(b, []float32{3, 4}),
		V: put(b, []float32{5, 6}), Scalars: put(b, s), Elems: 2, Decay: 2, Beta1: 0.9, Beta2: 0.9, Eps: 1e-8, WeightDecay: 0.1}
	AdamW(b, a)
	b.sync()
	var got []float32
	for _, p := range []device.Ptr{a.Weight, a.M, a.V} {
		got = append(got, view[float32](b, p, 2)...)
	}
	if fmt.Sprint(got) != "[1 2 3 4 5 6]" {
		t.Errorf("a skipped update changed its state to %v", got)
	}
}

// TestAccumulate sets or adds.
func TestAccumulate(t *testing.T) {
	const n = normBlock + 3
	b := newBench(t, 3)
	x, y := random(6, n), random(7, n)
	dst, src := put(b, random(8, n)), put(b, x)
	parts, want := put(b, make([]float64, 2)), put(b, make([]float64, 2))
	Accumulate(b, AccumulateArgs{Dst: dst, Src: src, Elems: n, First: true})
	Accumulate(b, AccumulateArgs{Dst: dst, Src: put(b, y), Squares: parts, Elems: n})
	squares.Parts(b, squares.PartsArgs{Grad: dst, Parts: want, Elems: n, Blocks: 2})
	b.sync()
	if got, want := view[float64](b, parts, 2), view[float64](b, want, 2); got[0] != want[0] || got[1] != want[1] || got[1] == 0 {
		t.Errorf("the squares are %v, want %v", got, want)
	}
	for i, got := range view[float32](b, dst, n) {
		if got != x[i]+y[i] {
			t.Fatalf("element %d is %v, want %v", i, got, x[i]+y[i])
		}
	}
}

// TestReduce: sums, clip factor, mean loss, and the skip flag.
func TestReduce(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	cases := []struct {
		name            string
		norms, partials []float64
		limit, flag     float64
		norm, clip      float64
		loss, tokens    float64
		skip            float64
	}{
		{"no limit", []float64{9, 16}, []float64{6, 2, 4, 3}, 0, 0, 5, 1, 2, 5, 0},
		{"clipped", []float64{9, 16}, []float64{6, 2}, 1, 0, 5, 1 / (5 + 1e-6), 3, 2, 0},
		{"under the limit", []float64{0.04}, []float64{6, 2}, 1, 0, 0.2, 1, 3, 2, 0},
		{"flag set before", []float64{1}, []float64{6, 2}, 0, 1, 1, 1, 3, 2, 1},
		{"norm overflows", []float64{inf}, []float64{6, 2}, 1, 0, inf, 0, 3, 2, 1},
		{"norm is NaN", []float64{1, nan}, []float64{6, 2}, 1, 0, nan, 0, 3, 2, 1},
		{"loss is NaN", []float64{1}, []float64{nan, 2}, 1, 0, 1, 0, nan, 2, 1},
		{"no targets", []float64{1}, []float64{0, 0}, 1, 0, 1, 0, nan, 0, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 1)
			s := make([]float64, plan.NumScalars)
			s[plan.ScalarMaxNorm], s[plan.ScalarSkip] = c.limit, c.flag
			p := put(b, s)
			Reduce(b, ReduceArgs{Scalars: p, Norms: put(b, c.norms), Partials: put(b, c.partials),
				NumNorms: int64(len(c.norms)), NumPartials: int64(len(c.partials) / 2)})
			b.sync()
			s = view[float64](b, p, plan.NumScalars)
			for _, v := range []struct {
				name      string
				got, want float64
			}{
				{"norm", s[plan.ScalarGradNorm], c.norm}, {"clip", s[plan.ScalarClip], c.clip},
				{"loss", s[plan.ScalarLoss], c.loss}, {"tokens", s[plan.ScalarTokens], c.tokens},
				{"skip", s[plan.ScalarSkip], c.skip},
			} {
				if v.got != v.want && !(math.IsNaN(v.got) && math.IsNaN(v.want)) {
					t.Errorf("%s is %v, want %v", v.name, v.got, v.want)
				}
			}
		})
	}
}

// BenchmarkAdamW reports the bytes moved: 28 a parameter (four reads, three writes).
func BenchmarkAdamW(b *testing.B) {
	const n = 1 << 24
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			w := newBench(b, threads)
			s := make([]float64, plan.NumScalars)
			s[plan.ScalarStep], s[plan.ScalarLR], s[plan.ScalarMaxNorm], s[plan.ScalarClip] = 10, 1e-4, 1, 0.5
			var p [4]device.Ptr
			for i := range p {
				p[i] = put(w, random(uint64(i), n))
			}
			for i, x := range view[float32](w, p[3], n) {
				view[float32](w, p[3], n)[i] = x * x
			}
			a := AdamWArgs{Weight: p[0], Grad: p[1], M: p[2], V: p[3], Scalars: put(w, s), Elems: n, Decay: n,
				Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1}
			b.SetBytes(28 * n)
			for b.Loop() {
				AdamW(w, a)
				w.sync()
			}
		})
	}
}

// BenchmarkCopy is the machine's copy bandwidth, by the device's own copy on two cores: bytes
// read and written.
func BenchmarkCopy(b *testing.B) {
	const n = 1 << 25
	w := newBench(b, 2)
	x, y := make([]float32, n), make([]float32, n)
	b.SetBytes(8 * n)
	for b.Loop() {
		w.Parallel(n, 1<<16, func(lo, hi int64) { copy(y[lo:hi], x[lo:hi]) })
	}
}
