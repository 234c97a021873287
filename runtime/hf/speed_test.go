package hf

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/plan"
)

// BenchmarkLoad reads a folder of 8 layers of 64 MiB from the page cache into the memory that a
// plan has for it: frozen weights of a GPU, those of a CPU, and the split masters of a GPU.
// Bytes are those of the folder.
func BenchmarkLoad(b *testing.B) {
	const layers, rows, cols = 8, 8192, 4096
	for _, dtype := range []string{"BF16", "F16", "F32"} {
		dir := b.TempDir()
		if err := os.WriteFile(filepath.Join(dir, configFile), []byte("{}"), 0o666); err != nil {
			b.Fatal(err)
		}
		data := numbers(rows*cols, dtype)
		var entries []safetensors.Entry
		var foreign []plan.Foreign
		shapes := Shapes{}
		for i := range layers {
			name := fmt.Sprintf("layer.%d", i)
			entries = append(entries, safetensors.Entry{Name: name, DType: dtype, Shape: []int64{rows, cols}, Data: data})
			foreign = append(foreign, plan.Foreign{Names: []string{name}, Params: []string{name}})
			shapes[name] = []int64{rows, cols}
		}
		file, err := os.Create(filepath.Join(dir, singleFile))
		if err != nil {
			b.Fatal(err)
		}
		if err := safetensors.Write(file, nil, entries); err != nil {
			b.Fatal(err)
		}
		file.Close()
		f, err := Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		m, err := f.Match(foreign, shapes)
		if err != nil {
			b.Fatal(err)
		}
		for _, kind := range []string{"frozen", "whole", "split"} {
			p, view := layersPlan(kind, layers, rows, cols)
			b.Run(dtype+" "+kind, func(b *testing.B) {
				b.SetBytes(layers * int64(len(data)))
				for b.Loop() {
					if err := m.Load(p, view, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(dtype+" fingerprint", func(b *testing.B) {
			b.SetBytes(layers * int64(len(data)))
			for b.Loop() {
				if _, err := m.Fingerprint(); err != nil {
					b.Fatal(err)
				}
			}
		})
		f.Close()
		os.RemoveAll(dir)
	}
}

// layersPlan has a slab for each layer, of one kind of masters.
func layersPlan(kind string, layers, rows, cols int64) (*plan.Plan, checkpoint.View) {
	p := &plan.Plan{}
	bufs := map[plan.BufID][]byte{}
	for i := range layers {
		id := plan.BufID(2*i + 1)
		s := plan.Slab{Weight: id, Elems: rows * cols, Lo: plan.NoBuf, Frozen: kind == "frozen"}
		s.Params = []plan.Param{{Name: fmt.Sprintf("layer.%d", i), Shape: []int64{rows, cols}}}
		bufs[id] = make([]byte, 4*s.Elems)
		switch kind {
		case "frozen":
			bufs[id] = make([]byte, 2*s.Elems)
		case "split":
			s.Lo = id + 1
			bufs[id], bufs[s.Lo] = make([]byte, 2*s.Elems), make([]byte, 2*s.Elems)
		}
		p.Slabs = append(p.Slabs, s)
	}
	return p, func(b plan.BufID) []byte { return bufs[b] }
}
