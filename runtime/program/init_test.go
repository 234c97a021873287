package program

import (
	"math"
	"testing"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cpu"
	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/plan"
)

// TestInitIsPure: an element depends on seed, path and index alone, however the parameter is
// cut (at even places).
func TestInitIsPure(t *testing.T) {
	for _, in := range []plan.Init{{Kind: plan.InitNormal, Scale: 0.02}, {Kind: plan.InitUniform, Scale: 0.1}} {
		key := paramKey(1337, "layer[3].q.weight")
		whole := make([]float32, 1001)
		fillInit(whole, key, 0, in)
		parts := make([]float32, 1001)
		for lo := 0; lo < len(parts); lo += 94 {
			fillInit(parts[lo:min(lo+94, len(parts))], key, int64(lo), in)
		}
		other := make([]float32, 1001)
		fillInit(other, paramKey(1338, "layer[3].q.weight"), 0, in)
		third := make([]float32, 1001)
		fillInit(third, paramKey(1337, "layer[4].q.weight"), 0, in)
		same := 0
		for i := range whole {
			if whole[i] != parts[i] {
				t.Fatalf("element %d is %v alone and %v in a whole", i, parts[i], whole[i])
			}
			if whole[i] == other[i] || whole[i] == third[i] {
				same++
			}
		}
		if same > 2 {
			t.Errorf("%d elements are equal under another seed or path", same)
		}
	}
}

// TestInitDistribution: mean, deviation, fourth moment, range and the correlation of neighbours.
func TestInitDistribution(t *testing.T) {
	const n = 1 << 18
	for _, c := range []struct {
		in                 plan.Init
		deviation, fourth  float64
		least, most, bound float64
	}{
		{plan.Init{Kind: plan.InitNormal, Scale: 0.5}, 0.5, 3, 2, 3, 0},
		{plan.Init{Kind: plan.InitUniform, Scale: 0.5}, 0.5 / math.Sqrt(3), 1.8, 0.4999, 0.5, 0.5},
	} {
		x := make([]float32, n)
		fillInit(x, paramKey(1, "w"), 0, c.in)
		var sum, square, four, pair, top float64
		for i, v := range x {
			f := float64(v)
			sum, square, four, top = sum+f, square+f*f, four+f*f*f*f, math.Max(top, math.Abs(f))
			if i > 0 {
				pair += f * float64(x[i-1])
			}
		}
		dev := math.Sqrt(square / n)
		if tol := 4 * c.deviation / math.Sqrt(n); math.Abs(sum/n) > tol || math.Abs(dev-c.deviation) > tol {
			t.Errorf("%+v: mean %v, deviation %v", c.in, sum/n, dev)
		}
		if k := four / n / (dev * dev * dev * dev); math.Abs(k-c.fourth) > 0.05 {
			t.Errorf("%+v: kurtosis %v, want %v", c.in, k, c.fourth)
		}
		if r := pair / square; math.Abs(r) > 4/math.Sqrt(n) {
			t.Errorf("%+v: neighbours correlate by %v", c.in, r)
		}
		if top < c.least || top > c.most {
			t.Errorf("%+v: largest value %v", c.in, top)
		}
	}
}

func TestInitConstants(t *testing.T) {
	x := []float32{5, 5, 5}
	fillInit(x, 1, 0, plan.Init{Kind: plan.InitZero})
	if x[0] != 0 || x[2] != 0 {
		t.Errorf("zero: %v", x)
	}
	fillInit(x, 1, 0, plan.Init{Kind: plan.InitOne})
	if x[0] != 1 || x[2] != 1 {
		t.Errorf("one: %v", x)
	}
}

// TestInitOfSplitMasters: in bf16 the masters are those of f32, bit for bit, in halves.
func TestInitOfSplitMasters(t *testing.T) {
	const n = 70016 // more than one piece
	masters := func(precision string) []float32 {
		p := &plan.Plan{
			Precision: precision,
			Arenas:    []plan.Arena{{Name: "a", Memory: device.HostMemory, Bytes: 8 * n, GenBytes: 8 * n}},
			Buffers:   []plan.Buffer{{}, {Name: "w", Bytes: 4 * n}},
			Slabs: []plan.Slab{{Name: "s", Elems: n, Weight: 1, Params: []plan.Param{
				{Name: "s.q", Shape: []int64{70000}, Init: plan.Init{Kind: plan.InitNormal, Scale: 0.02}},
				{Name: "s.norm", Off: 70000, Shape: []int64{16}, Init: plan.Init{Kind: plan.InitOne}},
			}}},
		}
		if p.Bf16() {
			p.Buffers = []plan.Buffer{{}, {Name: "hi", Bytes: 2 * n}, {Name: "lo", Off: 2 * n, Bytes: 2 * n}}
			p.Slabs[0].Lo = 2
		}
		d := cpu.New()
		defer d.Close()
		e, err := engine.New(engine.Config{Plan: p, Device: d, Infer: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := initialize(e, 1337); err != nil {
			t.Fatal(err)
		}
		state := slabs{e: e}
		m := checkpoint.MastersOf(&p.Slabs[0], state.view)
		if m.Split() != p.Bf16() {
			t.Errorf("%s: split is %t", precision, m.Split())
		}
		out := make([]float32, n)
		m.Read(out, 0)
		if got, err := movedWeights(e, 1337); err != nil || got != (moved{Weights: 70016}) {
			t.Errorf("%s: weights that nobody changed have moved: %v %v", precision, got, err)
		}
		// Two change: one in its last bit, one in the half that a GPU computes with.
		m.Write(0, []float32{math.Nextafter32(out[0], 1), out[1] + 1})
		if got, err := movedWeights(e, 1337); err != nil || got.Changed != 2 || got.Upper != 1 || math.Abs(got.Most-1) > 1e-6 {
			t.Errorf("%s: moved %+v, %v", precision, got, err)
		}
		return out
	}
	whole, split := masters("f32"), masters("bf16")
	for i := range whole {
		if whole[i] != split[i] {
			t.Fatalf("element %d is %v, in f32 %v", i, split[i], whole[i])
		}
	}
	if whole[0] == 0 || whole[69999] == 0 || whole[n-1] != 1 {
		t.Errorf("nothing was initialised: %v", whole[:4])
	}
}
