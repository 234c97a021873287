package hf

import (
	"sync"

	"github.com/megatrain/mtc/runtime/cores"
)

// rooms are memory for numbers, one for each core that converts some.
var rooms = sync.Pool{New: func() any { return new([]float32) }}

// roomFor lends n numbers to f.
func roomFor(n int64, f func(v []float32)) {
	room := rooms.Get().(*[]float32)
	if int64(cap(*room)) < n {
		*room = make([]float32, n)
	}
	f((*room)[:n])
	rooms.Put(room)
}

// elements reads n elements from one on, as f32, in pieces on all cores: put gets each with where
// it begins, several at a time, and may keep none. It returns the CRC-32C of what is in the file.
func (t *located) elements(from, n int64, put func(at int64, v []float32)) (crc uint32, err error) {
	w := width(t.DType)
	return t.shard.Range(t.Tensor, from*w, n*w, func(at int64, raw []byte) {
		roomFor(int64(len(raw))/w, func(v []float32) {
			decode(v, raw, t.DType)
			put(at/w, v)
		})
	})
}

// bytes reads a tensor's bytes from one on into dst.
func (t *located) bytes(from int64, dst []byte) (crc uint32, err error) {
	return t.shard.Range(t.Tensor, from, int64(len(dst)), func(at int64, b []byte) { copy(dst[at:], b) })
}

// columns hands out n columns of a matrix [rows, cols] from one on, as rows, like elements.
func columns(raw []byte, dtype string, rows, cols, from, n int64, put func(at int64, v []float32)) {
	const strip = 32 // columns gathered in one pass over the rows
	w := width(dtype)
	cores.Each(n, strip, func(at, to int64) {
		k := to - at
		roomFor(k*(rows+1), func(v []float32) {
			part, out := v[:k], v[k:]
			for r := range rows {
				decode(part, raw[(r*cols+from+at)*w:], dtype)
				for j := range k {
					out[j*rows+r] = part[j]
				}
			}
			put(at*rows, out)
		})
	})
}
