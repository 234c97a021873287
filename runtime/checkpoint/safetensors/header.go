package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"unicode/utf8"
)

// parseHeader reads the JSON header. Offsets of the tensors are relative to the data section.
func parseHeader(text []byte) (ts []Tensor, meta map[string]string, err error) {
	if !utf8.Valid(text) {
		return nil, nil, errors.New("the header is not UTF-8")
	}
	p := parser{json.NewDecoder(bytes.NewReader(text))}
	p.dec.UseNumber()
	seen := map[string]bool{}
	err = p.object("the header", func(name string) error {
		if seen[name] {
			return fmt.Errorf("the name %q occurs twice", name)
		}
		seen[name] = true
		if name == "__metadata__" {
			meta, err = p.meta()
			return err
		}
		t, err := p.tensor(name)
		ts = append(ts, t)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if rest := bytes.TrimLeft(text[p.dec.InputOffset():], " "); len(rest) > 0 {
		return nil, nil, errors.New("the header goes on after its closing brace")
	}
	return ts, meta, nil
}

// parser walks the header's tokens; it sees keys that occur twice, which a decode into a map
// would hide.
type parser struct{ dec *json.Decoder }

func (p parser) object(what string, member func(key string) error) error {
	if err := p.delim('{', what); err != nil {
		return err
	}
	for p.dec.More() {
		key, err := p.str(what)
		if err != nil {
			return err
		}
		if err := member(key); err != nil {
			return err
		}
	}
	return p.delim('}', what)
}

func (p parser) delim(want rune, what string) error {
	t, err := p.dec.Token()
	if err != nil {
		return fmt.Errorf("%s is not JSON: %w", what, err)
	}
	if d, ok := t.(json.Delim); !ok || rune(d) != want {
		return fmt.Errorf("%s has %v where %q stands", what, t, want)
	}
	return nil
}

func (p parser) str(what string) (string, error) {
	t, err := p.dec.Token()
	if err != nil {
		return "", fmt.Errorf("%s is not JSON: %w", what, err)
	}
	s, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("%s has %v where a string stands", what, t)
	}
	return s, nil
}

func (p parser) ints(what string) ([]int64, error) {
	if err := p.delim('[', what); err != nil {
		return nil, err
	}
	out := []int64{}
	for p.dec.More() {
		t, err := p.dec.Token()
		if err != nil {
			return nil, fmt.Errorf("%s is not JSON: %w", what, err)
		}
		num, _ := t.(json.Number)
		n, err := strconv.ParseInt(string(num), 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%s has %v where a whole number of 0 or more stands", what, t)
		}
		if out = append(out, n); len(out) > maxRank {
			return nil, fmt.Errorf("%s has more than %d numbers", what, maxRank)
		}
	}
	return out, p.delim(']', what)
}

func (p parser) meta() (map[string]string, error) {
	m := map[string]string{}
	err := p.object("__metadata__", func(key string) (err error) {
		if _, ok := m[key]; ok {
			return fmt.Errorf("the metadata key %q occurs twice", key)
		}
		m[key], err = p.str("__metadata__")
		return err
	})
	return m, err
}

func (p parser) tensor(name string) (Tensor, error) {
	t := Tensor{Name: name}
	what := fmt.Sprintf("tensor %q", name)
	var span []int64
	seen := map[string]bool{}
	err := p.object(what, func(key string) (err error) {
		if seen[key] {
			return fmt.Errorf("%s has two %q", what, key)
		}
		seen[key] = true
		switch key {
		case "dtype":
			t.DType, err = p.str(what)
		case "shape":
			t.Shape, err = p.ints(what)
		case "data_offsets":
			span, err = p.ints(what)
		default:
			err = fmt.Errorf("%s has an unknown key %q", what, key)
		}
		return err
	})
	switch {
	case err != nil:
		return t, err
	case len(seen) != 3:
		return t, fmt.Errorf("%s lacks one of dtype, shape and data_offsets", what)
	case len(span) != 2 || span[0] > span[1]:
		return t, fmt.Errorf("%s has data_offsets %v, which are not a range", what, span)
	}
	if t.Bytes, err = byteSize(t.DType, t.Shape); err != nil {
		return t, fmt.Errorf("%s: %w", what, err)
	}
	if got := span[1] - span[0]; got != t.Bytes {
		return t, fmt.Errorf("%s of dtype %s and shape %v takes %d bytes, its range has %d", what, t.DType, t.Shape, t.Bytes, got)
	}
	t.off = span[0]
	return t, nil
}

// tile checks that the tensors cover [0, size) without holes or overlaps, and sorts them by place.
func tile(ts []Tensor, size int64) error {
	sort.SliceStable(ts, func(i, j int) bool {
		a, b := &ts[i], &ts[j]
		if a.off != b.off {
			return a.off < b.off
		}
		return a.Bytes < b.Bytes
	})
	end := int64(0)
	for i := range ts {
		t := &ts[i]
		switch {
		case t.off < end:
			return fmt.Errorf("tensors %q and %q overlap", ts[i-1].Name, t.Name)
		case t.off > end:
			return fmt.Errorf("%d bytes before tensor %q belong to no tensor", t.off-end, t.Name)
		case t.Bytes > size-t.off:
			return fmt.Errorf("tensor %q ends %d bytes behind the end of the file", t.Name, t.Bytes-(size-t.off))
		}
		end = t.off + t.Bytes
	}
	if end != size {
		return fmt.Errorf("%d bytes after the last tensor belong to no tensor", size-end)
	}
	return nil
}
