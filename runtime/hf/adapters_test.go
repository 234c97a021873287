package hf

import (
	"bytes"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/plan"
)

// file makes a safetensors file.
func file(t *testing.T, path string, entries ...safetensors.Entry) {
	t.Helper()
	var b bytes.Buffer
	if err := safetensors.Write(&b, nil, entries); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Dir(path), filepath.Base(path), b.String())
}

func random(rng *rand.Rand, n int64) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// For every operation of the map, what the merged tensor has more than the base is the product of
// the adapter as it is exported, and both are, parameter by parameter, (alpha / rank) B A; where a
// parameter has no adapter it is nothing.
func TestAdaptersBothWays(t *testing.T) {
	const in, rank, alpha = 33, 2, 3.0
	for _, c := range []struct {
		op       string
		params   Shapes
		order    []string
		names    []string
		adapters []string
	}{
		{"", Shapes{"a": {40, in}}, []string{"a"}, []string{"x"}, []string{"a"}},
		{"transpose", Shapes{"a": {40, in}}, []string{"a"}, []string{"x"}, []string{"a"}},
		{"split", Shapes{"a": {40, in}, "b": {7, in}, "c": {20, in}}, []string{"a", "b", "c"}, []string{"x"}, []string{"a", "c"}},
		{"split(transpose", Shapes{"a": {40, in}, "b": {7, in}, "c": {20, in}}, []string{"a", "b", "c"}, []string{"x"}, []string{"b", "c"}},
		{"split(transpose", Shapes{"a": {8, in}, "b": {8, in}}, []string{"a", "b"}, []string{"x"}, []string{"a", "b"}},
		{"join", Shapes{"a": {40, in}}, []string{"a"}, []string{"x", "y"}, []string{"a"}},
		{"join(transpose", Shapes{"a": {40, in}}, []string{"a"}, []string{"x", "y"}, []string{"a"}},
	} {
		t.Run(c.op, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			dir := t.TempDir()
			put(t, dir, configFile, "{}")
			rows := int64(0)
			for _, n := range c.order {
				rows += c.params[n][0]
			}
			rows /= int64(len(c.names))
			transposed := strings.Contains(c.op, "transpose")
			shape := []int64{rows, in}
			if transposed {
				slices.Reverse(shape)
			}
			base := map[string][]float32{}
			var entries []safetensors.Entry
			for _, n := range c.names {
				base[n] = random(rng, rows*in)
				raw := make([]byte, 4*rows*in)
				encode(raw, base[n], "F32")
				entries = append(entries, safetensors.Entry{Name: n, DType: "F32", Shape: shape, Data: raw})
			}
			file(t, filepath.Join(dir, singleFile), entries...)
			p := &plan.Plan{LoRA: plan.LoRA{Rank: rank, Alpha: alpha}, Foreign: []plan.Foreign{{Op: c.op, Names: c.names, Params: c.order}}}
			delta := map[string][]float64{} // by parameter, [out, in]
			slab := plan.Slab{}
			var trained []safetensors.Entry
			for _, n := range c.order {
				out := c.params[n][0]
				slab.Params = append(slab.Params, plan.Param{Name: n, Shape: c.params[n]})
				delta[n] = make([]float64, out*in)
				if !slices.Contains(c.adapters, n) {
					continue
				}
				p.LoRA.Adapters = append(p.LoRA.Adapters, plan.Adapter{Weight: n, A: n + ".A", B: n + ".B"})
				a, b := random(rng, rank*in), random(rng, out*rank)
				trained = append(trained, f32(n+".A", rank, in, a), f32(n+".B", out, rank, b))
				for o := range out {
					for i := range int64(in) {
						for r := range int64(rank) {
							delta[n][o*in+i] += alpha / rank * float64(b[o*rank+r]) * float64(a[r*in+i])
						}
					}
				}
			}
			p.Slabs = []plan.Slab{slab}
			weights := filepath.Join(t.TempDir(), "weights")
			file(t, weights, trained...)
			f, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			m, err := f.Match(p.Foreign, c.params)
			if err != nil {
				t.Fatal(err)
			}
			w, err := safetensors.Open(weights)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			x := &exporter{Request: &Request{Plan: p, Base: m}, weights: w, res: &Result{}}
			list, fanIn, err := x.modules()
			if err != nil || fanIn != transposed || len(list) != len(c.names) {
				t.Fatalf("%d modules, transposed %t: %v", len(list), fanIn, err)
			}
			for k, name := range c.names {
				var raw bytes.Buffer
				if err := x.merged(&outTensor{name: name, dtype: "F32", shape: shape, entry: &p.Foreign[0], part: k}, &encoder{w: &raw, dtype: "F32"}); err != nil {
					t.Fatal(err)
				}
				merged := make([]float32, raw.Len()/4)
				decode(merged, raw.Bytes(), "F32")
				mod := &list[k]
				if mod.in != in || mod.out != rows || mod.rank != rank*mod.n || int64(len(mod.a)) != mod.rank*in || int64(len(mod.b)) != rows*mod.rank {
					t.Fatalf("the module is %d by %d of rank %d with %d and %d numbers", mod.out, mod.in, mod.rank, len(mod.a), len(mod.b))
				}
				at := int64(0)
				if len(c.names) > 1 {
					at = -rows * int64(k)
				}
				for _, n := range c.order {
					for o := range c.params[n][0] {
						row := at + o
						if row < 0 || row >= rows {
							continue
						}
						for i := range int64(in) {
							want := delta[n][o*in+i]
							place := row*in + i
							if transposed {
								place = i*rows + row
							}
							if got := float64(merged[place]) - float64(base[name][place]); math.Abs(got-want) > 2e-5 {
								t.Fatalf("%s of %s: [%d, %d] moved by %g, not %g", n, name, o, i, got, want)
							}
							var product float64
							for r := range mod.rank {
								product += float64(mod.b[row*mod.rank+r]) * float64(mod.a[r*in+i])
							}
							scale := alpha * float64(mod.n) / float64(mod.rank) // as the patterns of the export say
							if math.Abs(scale*product-want) > 2e-5 {
								t.Fatalf("%s of %s: [%d, %d] is %g in the exported adapter, not %g", n, name, o, i, scale*product, want)
							}
						}
					}
					at += c.params[n][0]
				}
			}
		})
	}
}

// A fingerprint is of the tensors that the model takes: how they are cut into files, prefixes and
// what else lies there do not count, and one bit of one weight does, as do dtype and shape.
func TestFingerprint(t *testing.T) {
	foreign := []plan.Foreign{{Names: []string{"model.x"}, Params: []string{"a"}}, {Names: []string{"model.y"}, Params: []string{"b"}}}
	shapes := Shapes{"a": {4, 6}, "b": {24}}
	x, y := numbers(24, "F32"), numbers(24, "BF16")
	of := func(files map[string][]safetensors.Entry, index string) string {
		t.Helper()
		dir := t.TempDir()
		put(t, dir, configFile, "{}")
		for name, entries := range files {
			file(t, filepath.Join(dir, name), entries...)
		}
		if index != "" {
			put(t, dir, indexFile, index)
		}
		f, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		m, err := f.Match(foreign, shapes)
		if err != nil {
			t.Fatal(err)
		}
		print, err := m.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return print
	}
	ex := safetensors.Entry{Name: "model.x", DType: "F32", Shape: []int64{4, 6}, Data: x}
	ey := safetensors.Entry{Name: "model.y", DType: "BF16", Shape: []int64{24}, Data: y}
	one := of(map[string][]safetensors.Entry{singleFile: {ex, ey}}, "")
	bare := ex
	bare.Name = "x"
	constant := safetensors.Entry{Name: "h.0.attn.bias", DType: "F32", Shape: []int64{24}, Data: x}
	for what, files := range map[string]map[string][]safetensors.Entry{
		"another order":           {singleFile: {ey, ex}},
		"no prefix, and a buffer": {singleFile: {bare, ey, constant}},
		"two files":               {"model-00001-of-00002.safetensors": {ex}, "model-00002-of-00002.safetensors": {ey}},
	} {
		index := ""
		if len(files) > 1 {
			index = `{"metadata": {}, "weight_map": {"model.x": "model-00001-of-00002.safetensors", "model.y": "model-00002-of-00002.safetensors"}}`
		}
		if got := of(files, index); got != one {
			t.Errorf("%s: %s, not %s", what, got, one)
		}
	}
	changed := ex
	changed.Data = bytes.Clone(x)
	changed.Data[50] ^= 1
	wide := ey
	wide.DType, wide.Data = "F32", numbers(24, "F32")
	for what, list := range map[string][]safetensors.Entry{"a bit": {changed, ey}, "another dtype": {ex, wide}} {
		if of(map[string][]safetensors.Entry{singleFile: list}, "") == one {
			t.Errorf("%s changes nothing", what)
		}
	}
}
