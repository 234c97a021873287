package hf

import (
	"io"
	"sync/atomic"

	"github.com/megatrain/mtc/runtime/cores"
)

// window is how many numbers are converted, on all cores, before they are written.
const window = 4 << 20

// encoder writes numbers as a dtype.
type encoder struct {
	w     io.Writer
	dtype string
	raw   []byte
	lost  atomic.Int64 // finite values that the dtype has no room for
}

// write writes n numbers that fill puts, in any order and several at a time.
func (e *encoder) write(n int64, fill func(put func(at int64, v []float32)) error) error {
	w := width(e.dtype)
	raw := e.room(n * w)
	err := fill(func(at int64, v []float32) {
		if k := encode(raw[at*w:], v, e.dtype); k > 0 {
			e.lost.Add(k)
		}
	})
	if err == nil {
		_, err = e.w.Write(raw)
	}
	return err
}

func (e *encoder) room(n int64) []byte {
	if int64(len(e.raw)) < n {
		e.raw = make([]byte, n)
	}
	return e.raw[:n]
}

// elements writes n elements of a tensor from one on.
func (e *encoder) elements(t *located, from, n int64) error {
	for end := from + n; from < end; from += window {
		k := min(window, end-from)
		err := e.write(k, func(put func(at int64, v []float32)) error {
			if _, err := t.elements(from, k, put); err != nil {
				return t.failed(err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// values writes numbers that are in memory.
func (e *encoder) values(v []float32) error {
	for len(v) > 0 {
		k := min(len(v), window)
		err := e.write(int64(k), func(put func(at int64, v []float32)) error {
			cores.Each(int64(k), 1<<16, func(from, to int64) { put(from, v[from:to]) })
			return nil
		})
		if err != nil {
			return err
		}
		v = v[k:]
	}
	return nil
}

// columns writes a matrix [rows, cols] of f32, transposed.
func (e *encoder) columns(raw []byte, rows, cols int64) error {
	at := max(1, window/max(1, rows)) // columns at a time
	for from := int64(0); from < cols; from += at {
		k := min(at, cols-from)
		err := e.write(k*rows, func(put func(at int64, v []float32)) error {
			columns(raw, "F32", rows, cols, from, k, put)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
