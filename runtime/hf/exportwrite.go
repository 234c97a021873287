package hf

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/fault"
)

// write writes the files.
func (x *exporter) write() error {
	for i := range x.layout.files {
		if err := x.file(&x.layout.files[i]); err != nil {
			return err
		}
	}
	if x.layout.index != nil {
		if err := x.put(indexFile, x.layout.index); err != nil {
			return err
		}
	}
	if x.config != nil {
		if err := x.put(configFile, x.config); err != nil {
			return err
		}
	}
	if x.own {
		if err := x.ownFiles(); err != nil {
			return err
		}
	}
	for _, dir := range []string{keepFolder, tokenizerFolder} {
		entries, err := os.ReadDir(filepath.Join(x.Run, dir))
		if err != nil {
			continue // a run that keeps none
		}
		for _, e := range entries {
			name := e.Name()
			if strings.HasSuffix(name, headerSuffix) || name == buffersFile || name == listFile || name == indexFile || e.IsDir() || exists(filepath.Join(x.tmp, name)) {
				continue
			}
			if err := copyFile(filepath.Join(x.Run, dir, name), filepath.Join(x.tmp, name)); err != nil {
				return err
			}
			x.res.Files = append(x.res.Files, name)
		}
	}
	return nil
}

func (x *exporter) put(name string, text []byte) error {
	x.res.Files = append(x.res.Files, name)
	return os.WriteFile(filepath.Join(x.tmp, name), text, 0o666)
}

// same says whether two paths are one folder.
func same(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// file writes one file of weights.
func (x *exporter) file(f *outFile) error {
	out, err := os.Create(filepath.Join(x.tmp, f.name))
	if err != nil {
		return err
	}
	defer out.Close()
	w := bufio.NewWriterSize(out, 1<<20)
	var entries []safetensors.Entry
	for i := range f.tensors {
		t := &f.tensors[i]
		entries = append(entries, safetensors.Entry{Name: t.name, DType: t.dtype, Shape: t.shape, Stream: func(w io.Writer) error { return x.tensor(w, t) }})
	}
	if f.header == nil {
		err = safetensors.Write(w, f.meta, entries)
	} else if _, err = io.Copy(w, bytes.NewReader(f.header)); err == nil {
		for i := range entries {
			if err = entries[i].Stream(w); err != nil {
				break
			}
		}
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		return err
	}
	info, err := out.Stat()
	if err != nil {
		return err
	}
	x.res.Bytes += info.Size()
	x.res.Tensors += len(f.tensors)
	x.res.Files = append(x.res.Files, f.name)
	return out.Close()
}

// tensor writes the data of one tensor.
func (x *exporter) tensor(w io.Writer, t *outTensor) error {
	if t.buffer != nil {
		_, err := io.Copy(w, &source{x.buffers.Data(t.buffer), x.buffers.Path})
		return err
	}
	out := &encoder{w: w, dtype: t.dtype}
	write := x.values
	if x.Base != nil {
		write = x.merged
	}
	err := write(t, out)
	if lost := out.lost.Load(); lost > 0 {
		x.res.Notes = append(x.res.Notes, fmt.Sprintf("%d values of %s are too large for %s and are infinite there", lost, t.name, dtypeNames[t.dtype]))
	}
	return err
}

// values writes a tensor's numbers in order.
func (x *exporter) values(t *outTensor, out *encoder) error {
	var parts []*located
	for _, path := range t.entry.Params {
		p := x.weights.Lookup(path)
		if p == nil || p.DType != "F32" {
			return fault.New("MT0625", x.weights.Path, "there is no tensor %s of f32", path)
		}
		parts = append(parts, &located{p, &Shard{File: x.weights}})
	}
	from, rows := int64(0), int64(0)
	for _, p := range parts {
		rows += p.Shape[0]
	}
	if n := int64(len(t.entry.Names)); n > 1 { // a join: rows of the only parameter
		rows /= n
		from = int64(t.part) * rows
	}
	if !transposed(t.entry) {
		for _, p := range parts {
			per := p.Elems() / p.Shape[0]
			if err := out.elements(p, from*per, min(rows, p.Shape[0])*per); err != nil {
				return err
			}
		}
		return nil
	}
	cols := parts[0].Shape[1]
	raw := make([]byte, 0, 4*rows*cols)
	for _, p := range parts {
		at := len(raw)
		raw = raw[:int64(at)+4*min(rows, p.Shape[0])*cols]
		if _, err := p.bytes(4*from*cols, raw[at:]); err != nil {
			return p.failed(err)
		}
	}
	return out.columns(raw, rows, cols)
}
