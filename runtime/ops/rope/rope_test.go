package rope

import (
	"math"
	"testing"

	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/tensor"
)

func call(name string, args ...float64) op.Value {
	v := op.Value{Kind: op.VCall, Str: name}
	for _, a := range args {
		v.Args = append(v.Args, *op.FloatValue(a))
	}
	return v
}

func TestRope(t *testing.T) {
	in := []tensor.Type{optest.F32(24)}
	hd := op.Value{Kind: op.VInt, Int: 8, Dim: "hd"}
	// 2 x 5 rows of 24: 240 elements of 960 bytes, and a table of 5 x 8 of 160.
	cost := map[string]op.Cost{"Forward": {FLOPs: 720, Bytes: 2080}, "Backward": {FLOPs: 960, Bytes: 2080}}
	good := func(name string, interleaved bool, attr map[string]op.Value, freq func(j int) (f, amplitude float64)) optest.Good {
		attr["hd"] = hd
		return optest.Good{
			Name: name, In: in, Attr: attr, Out: "[B, T, D = 24]", Batch: 2, Seq: 5, Cost: cost,
			Ref: func(v optest.Values) []float64 {
				x, y := v.F["x"], make([]float64, len(v.F["x"]))
				for i := 0; i < len(x); i += 8 {
					p, dims := float64(i/24%v.Seq), 8
					if n, ok := attr["dims"]; ok && !n.IsNone() {
						dims = int(n.Int)
					}
					copy(y[i+dims:i+8], x[i+dims:i+8])
					for j := range dims / 2 {
						a, b := i+j, i+j+dims/2
						if interleaved {
							a, b = i+2*j, i+2*j+1
						}
						f, amplitude := freq(j)
						sin, cos := math.Sincos(p * f)
						y[a] = amplitude * (x[a]*cos - x[b]*sin)
						y[b] = amplitude * (x[b]*cos + x[a]*sin)
					}
				}
				return y
			},
		}
	}
	// A part has a table of its own size.
	part := func(name string, interleaved bool, attr map[string]op.Value, freq func(j int) (f, amplitude float64)) optest.Good {
		g, table := good(name, interleaved, attr, freq), 5*attr["dims"].Int*4
		g.Cost = map[string]op.Cost{"Forward": {FLOPs: 720, Bytes: 1920 + table}, "Backward": {FLOPs: 960, Bytes: 1920 + table}}
		return g
	}
	plain := func(theta float64) func(int) (float64, float64) {
		return func(j int) (float64, float64) { return math.Pow(theta, -float64(j)/4), 1 }
	}
	words := func(kv ...any) map[string]op.Value {
		m := map[string]op.Value{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i].(string)] = kv[i+1].(op.Value)
		}
		return m
	}
	optest.Run(t, optest.Case{
		Def:   Def,
		Funcs: map[string]any{"Forward": Forward, "Backward": Backward, "Angles": Angles},
		Good: []optest.Good{
			good("half", false, words("theta", *op.FloatValue(100)), plain(100)),
			good("interleaved", true, words("layout", *op.WordValue("interleaved")), plain(10000)),
			good("linear", false, words("scaling", call("linear", 4)), func(j int) (float64, float64) {
				return math.Pow(10000, -float64(j)/4) / 4, 1
			}),
			// Wavelengths 2 pi 10000^(j/4) = 6.3, 63, 628, 6283 with original 256: above 256 / 1 they
			// are stretched by 8, below 256 / 4 = 64 they stay.
			good("llama3", false, words("scaling", call("llama3", 8, 1, 4, 256)), func(j int) (float64, float64) {
				return math.Pow(10000, -float64(j)/4) / []float64{1, 1, 8, 8}[j], 1
			}),
			// Turns over 256 positions: 40.7, 4.07, 0.407, 0.0407. Pair numbers that turn 32 times and
			// once are 0.10 and 1.61, so the ramp goes from 0 to 2: 0, 1/2, 1, 1.
			good("yarn", false, words("scaling", call("yarn", 4, 256)), func(j int) (float64, float64) {
				return math.Pow(10000, -float64(j)/4) * []float64{1, 0.5 + 0.5/4, 0.25, 0.25}[j], 0.1*math.Log(4) + 1
			}),
			good("yarn with an amplitude", false, words("scaling", call("yarn", 4, 256, 32, 1, 0.75)), func(j int) (float64, float64) {
				return math.Pow(10000, -float64(j)/4) * []float64{1, 0.5 + 0.5/4, 0.25, 0.25}[j], 0.75
			}),
			part("half of a part", false, words("theta", *op.FloatValue(100), "dims", *op.IntValue(4)), func(j int) (float64, float64) { return math.Pow(100, -float64(j)/2), 1 }),
			part("interleaved part", true, words("theta", *op.FloatValue(100), "dims", *op.IntValue(6), "layout", *op.WordValue("interleaved")),
				func(j int) (float64, float64) { return math.Pow(100, -float64(j)/3), 1 }),
		},
		Wide: []optest.Good{
			{Name: "a part of wide heads", In: []tensor.Type{optest.F32(384)}, Attr: words("hd", *op.IntValue(128), "dims", *op.IntValue(32)), Batch: 2, Seq: 19},
			{Name: "an interleaved part", In: []tensor.Type{optest.F32(320)}, Attr: words("hd", *op.IntValue(80), "dims", *op.IntValue(20), "layout", *op.WordValue("interleaved")), Batch: 2, Seq: 7},
			{Name: "a part of many heads", In: []tensor.Type{optest.F32(8192)}, Attr: words("hd", *op.IntValue(256), "dims", *op.IntValue(2)), Batch: 1, Seq: 2},
			{Name: "wide heads", In: []tensor.Type{optest.F32(384)}, Attr: map[string]op.Value{"hd": *op.IntValue(128)}, Batch: 2, Seq: 19},
			{Name: "wide interleaved", In: []tensor.Type{optest.F32(384)}, Attr: words("hd", *op.IntValue(64), "layout", *op.WordValue("interleaved")), Batch: 2, Seq: 19},
			{Name: "many heads", In: []tensor.Type{optest.F32(8192)}, Attr: map[string]op.Value{"hd": *op.IntValue(128)}, Batch: 1, Seq: 2},
			{Name: "pairs of no vector", In: []tensor.Type{optest.F32(60)}, Attr: map[string]op.Value{"hd": *op.IntValue(20)}, Batch: 1, Seq: 9},
		},
		Bad: []optest.Bad{
			{Name: "an odd head", In: in, Attr: words("hd", *op.IntValue(3)), Arg: "hd", Want: "even"},
			{Name: "no head", In: in, Attr: words("hd", *op.IntValue(0)), Arg: "hd", Want: "positive"},
			{Name: "heads that do not divide", In: in, Attr: words("hd", *op.IntValue(10)), Arg: "x", Want: "multiple of hd = 10"},
			{Name: "an odd part", In: in, Attr: words("hd", hd, "dims", *op.IntValue(3)), Arg: "dims", Want: "even"},
			{Name: "no part", In: in, Attr: words("hd", hd, "dims", *op.IntValue(0)), Arg: "dims", Want: "from 2"},
			{Name: "more than a head", In: in, Attr: words("hd", hd, "dims", *op.IntValue(10)), Arg: "dims", Want: "hd = 8"},
			{Name: "no theta", In: in, Attr: words("hd", hd, "theta", *op.FloatValue(0)), Arg: "theta", Want: "above 0"},
			{Name: "an unknown layout", In: in, Attr: words("hd", hd, "layout", *op.WordValue("full")), Arg: "layout", Want: "half or interleaved"},
			{Name: "an unknown scaling", In: in, Attr: words("hd", hd, "scaling", call("ntk", 2)), Arg: "scaling", Want: "llama3(factor, low, high, original)"},
			{Name: "too few numbers", In: in, Attr: words("hd", hd, "scaling", call("llama3", 8)), Arg: "scaling", Want: "llama3(factor, low, high, original), got llama3(8.0)"},
			{Name: "too many numbers", In: in, Attr: words("hd", hd, "scaling", call("linear", 8, 9)), Arg: "scaling", Want: "linear(factor), got"},
			{Name: "a factor of 0", In: in, Attr: words("hd", hd, "scaling", call("linear", 0)), Arg: "scaling", Want: "above 0"},
			{Name: "low above high", In: in, Attr: words("hd", hd, "scaling", call("llama3", 8, 4, 1, 256)), Arg: "scaling", Want: "low below high"},
		},
	})
}

// Where documents share rows, positions begin anew in each: the rows of a document are those
// that it has alone.
func TestStarts(t *testing.T) {
	const hd, d, rows = 8, 16, 12
	starts := []int32{0, 0, 0, 3, 3, 5, 5, 5, 5, 5, 10, 10}
	x := make([]float32, rows*d)
	for i := range x {
		x[i] = float32(i%17) - 8
	}
	check := func(t *testing.T, m *optest.Machine) {
		cs := make([]float32, rows*hd)
		Angles(cs, AnglesArgs{HD: hd, Theta: 100})
		table := m.F32(cs...)
		both := func(x []float32, starts []int32) (y, dx []float32) {
			n := len(x) / d
			a := ForwardArgs{X: m.Act(x...), Y: m.Bytes(m.ActSize() * int64(len(x))), CS: table, Rows: n, Seq: n, D: d, HD: hd, Dims: hd}
			b := BackwardArgs{DY: a.X, DX: m.Bytes(m.ActSize() * int64(len(x))), CS: table, Rows: n, Seq: n, D: d, HD: hd, Dims: hd}
			if starts != nil {
				a.Starts = m.I32(starts...)
				b.Starts = a.Starts
			}
			Forward(m.Queue, a)
			Backward(m.Queue, b)
			m.Sync()
			return m.ReadAct(a.Y, int64(len(x))), m.ReadAct(b.DX, int64(len(x)))
		}
		y, dx := both(x, starts)
		for at := 0; at < rows; {
			end := at
			for end < rows && starts[end] == int32(at) {
				end++
			}
			wantY, wantDX := both(x[at*d:end*d], nil)
			for i := range wantY {
				if y[at*d+i] != wantY[i] || dx[at*d+i] != wantDX[i] {
					t.Fatalf("document at %d, element %d: %v and %v, alone %v and %v", at, i, y[at*d+i], dx[at*d+i], wantY[i], wantDX[i])
				}
			}
			at = end
		}
	}
	check(t, optest.NewMachine(t, 2))
	optest.OnGPU(t, func(t *testing.T, f32 bool) { check(t, optest.GPU(t, f32)) })
}
