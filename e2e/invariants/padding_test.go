package invariants

import (
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
)

// gradients trains a step on given tokens and targets from the weights of a run, and returns the
// loss and the gradient of every parameter.
func gradients(t *testing.T, binary, weights string, tokens, targets []int32) map[string][]float64 {
	t.Helper()
	const rows, seq = 8, 16
	in, err := safetensors.Open(filepath.Join(weights, checkpoint.WeightsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	ints := func(name string, shape []int64, v []int32) safetensors.Entry {
		b := make([]byte, 4*len(v))
		for i, x := range v {
			little.PutUint32(b[4*i:], uint32(x))
		}
		return safetensors.Entry{Name: name, DType: "I32", Shape: shape, Data: b}
	}
	entries := []safetensors.Entry{ints("tokens", []int64{1, rows, seq + 1}, tokens), ints("targets", []int64{1, rows, seq}, targets)}
	for _, x := range in.Tensors {
		v, err := in.F32(x.Name)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 4*len(v))
		for i := range v {
			little.PutUint32(b[4*i:], math.Float32bits(v[i]))
		}
		entries = append(entries, safetensors.Entry{Name: "init." + x.Name, DType: "F32", Shape: x.Shape, Data: b})
	}
	dir := t.TempDir()
	fixture, dump := filepath.Join(dir, "fixture"), filepath.Join(dir, "dump")
	f, err := os.Create(fixture)
	if err != nil {
		t.Fatal(err)
	}
	if err := safetensors.Write(f, nil, entries); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	run(t, binary, "debug-step", "--fixture", fixture, "--dump", dump)
	got, err := safetensors.Open(dump)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	out := map[string][]float64{}
	for _, x := range got.Tensors {
		switch {
		case strings.HasPrefix(x.Name, "grad."):
			v, err := got.F32(x.Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, y := range v {
				out[x.Name] = append(out[x.Name], float64(y))
			}
		case x.Name == "loss":
			b, err := io.ReadAll(got.Data(&x))
			if err != nil || len(b) != 8 {
				t.Fatalf("%d bytes, %v", len(b), err)
			}
			out["loss"] = []float64{math.Float64frombits(little.Uint64(b))}
		}
	}
	return out
}

var little = binary.LittleEndian

// What stands where nothing is learned behind a row's last target, and in rows without any, has no
// part in loss and gradients: neither does its token's row of the table get a gradient, nor does
// another token there change a bit of any. So it is for rows of the table that no text has.
func TestPaddingHasNoGradient(t *testing.T) {
	t.Parallel()
	const rows, seq = 8, 16
	for _, family := range []string{"gpt2", "llama", "qwen", "window", "topk", "threshold", "choice"} {
		t.Run(family, func(t *testing.T) {
			binary := program(t, family, compiler.Options{Set: []string{"train.clip=1.0"}})
			weights := checkpointOf(t, train(t, binary, out(t), "--data", corpus(t, 9000), "--steps", "1", "--set", "train.eval=none").dir)
			// Row r has 3r + 1 targets at its beginning, as far as it goes; the last one has none.
			// Real tokens are below 100.
			batch := func(pad func(i int) int32) (tokens, targets []int32) {
				x := uint32(7)
				for r := range rows {
					n := min(3*r+1, seq-2)
					if r == rows-1 {
						n = 0
					}
					for i := range seq + 1 {
						x = x*1664525 + 1013904223
						id := int32(x >> 24 % 100)
						if i > n {
							id = pad(r*seq + i)
						}
						tokens = append(tokens, id)
						if i > 0 {
							targets = append(targets, -1)
							if i <= n {
								targets[len(targets)-1] = id
							}
						}
					}
				}
				return tokens, targets
			}
			tokens, targets := batch(func(int) int32 { return 0 })
			want := gradients(t, binary, weights, tokens, targets)
			if want["loss"] == nil || len(want) < 10 {
				t.Fatalf("%d tensors in the dump", len(want))
			}
			inUse := map[int32]bool{}
			for i, id := range tokens {
				if r, at := i/(seq+1), i%(seq+1); at < seq && at <= min(3*r+1, seq-2) && r < rows-1 {
					inUse[id] = true
				}
			}
			for what, pad := range map[string]func(i int) int32{
				"another id":             func(int) int32 { return 201 },
				"the last row":           func(int) int32 { return 255 },
				"ids all over the table": func(i int) int32 { return int32(100 + i*37%156) },
			} {
				tokens, targets := batch(pad)
				got := gradients(t, binary, weights, tokens, targets)
				for name, w := range want {
					for i, g := range got[name] {
						if g != w[i] {
							t.Errorf("%s as padding: %s [%d] is %v, %v with 0", what, name, i, g, w[i])
							break
						}
					}
				}
				if family == "gpt2" || family == "qwen" {
					continue // the head is the table, and a softmax reaches all its rows
				}
				table := got["grad.wte.weight"]
				width := int32(len(table) / 256)
				if width < 8 {
					t.Fatalf("the table's gradient has %d values", len(table))
				}
				for id := range int32(256) {
					for _, g := range table[id*width : (id+1)*width] {
						if g != 0 && !inUse[id] {
							t.Fatalf("%s as padding: row %d of the table has the gradient %v", what, id, g)
						}
					}
				}
			}
		})
	}
}
