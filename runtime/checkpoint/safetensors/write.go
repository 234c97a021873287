package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// Entry is a tensor to write: its bytes, little-endian, from memory (Data) or from a function
// that writes exactly as many as the shape asks for (Stream).
type Entry struct {
	Name   string
	DType  string
	Shape  []int64
	Data   []byte
	Stream func(w io.Writer) error
}

// Write writes a file with the entries in the given order. It holds the header in memory, no
// tensor. Entries that do not fit their shape, or that share a name, are an error before
// anything is written.
func Write(w io.Writer, meta map[string]string, entries []Entry) error {
	header, total, err := makeHeader(meta, entries)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	out := counter{w: w}
	for i := range entries {
		e := &entries[i]
		before := out.n
		if e.Stream != nil {
			err = e.Stream(&out)
		} else {
			_, err = out.Write(e.Data)
		}
		if err != nil {
			return err
		}
		if want, _ := byteSize(e.DType, e.Shape); out.n-before != want {
			return fmt.Errorf("tensor %q: %d bytes were written, its shape has %d", e.Name, out.n-before, want)
		}
	}
	if out.n != total {
		return fmt.Errorf("%d bytes were written of %d", out.n, total)
	}
	return nil
}

// Size is the number of bytes that Write would write.
func Size(meta map[string]string, entries []Entry) (int64, error) {
	header, total, err := makeHeader(meta, entries)
	return int64(len(header)) + total, err
}

// makeHeader returns the length word and the JSON header, padded with spaces so that the data
// starts at a multiple of 8, and the size of the data.
func makeHeader(meta map[string]string, entries []Entry) ([]byte, int64, error) {
	h := append(make([]byte, 8, 8+128*len(entries)), '{')
	if len(meta) > 0 {
		m, err := json.Marshal(meta) // keys sorted
		if err != nil {
			return nil, 0, err
		}
		h = append(append(h, `"__metadata__":`...), m...)
	}
	seen := map[string]bool{"__metadata__": true}
	var off int64
	for i := range entries {
		e := &entries[i]
		n, err := byteSize(e.DType, e.Shape)
		switch {
		case err != nil:
			return nil, 0, fmt.Errorf("tensor %q: %w", e.Name, err)
		case !utf8.ValidString(e.Name):
			return nil, 0, fmt.Errorf("tensor %q: the name is not UTF-8", e.Name)
		case seen[e.Name]:
			return nil, 0, fmt.Errorf("tensor %q: the name is taken", e.Name)
		case e.Stream == nil && int64(len(e.Data)) != n:
			return nil, 0, fmt.Errorf("tensor %q: %d bytes for a %s of shape %v, which has %d", e.Name, len(e.Data), e.DType, e.Shape, n)
		}
		seen[e.Name] = true
		shape := e.Shape
		if shape == nil {
			shape = []int64{}
		}
		t, err := json.Marshal(struct {
			DType string   `json:"dtype"`
			Shape []int64  `json:"shape"`
			Span  [2]int64 `json:"data_offsets"`
		}{e.DType, shape, [2]int64{off, off + n}})
		if err != nil {
			return nil, 0, err
		}
		name, err := json.Marshal(e.Name)
		if err != nil {
			return nil, 0, err
		}
		if len(h) > 9 {
			h = append(h, ',')
		}
		h = append(append(append(h, name...), ':'), t...)
		off += n
	}
	h = append(h, '}')
	for len(h)%8 != 0 {
		h = append(h, ' ')
	}
	if len(h)-8 > MaxHeader {
		return nil, 0, fmt.Errorf("a header of %d bytes, at most %d can be read back", len(h)-8, MaxHeader)
	}
	binary.LittleEndian.PutUint64(h, uint64(len(h)-8))
	return h, off, nil
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
