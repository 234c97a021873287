package hf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/megatrain/mtc/runtime/fault"
)

// Limits of JSON files. The largest index known to us has 6 MB.
const (
	maxJSON  = 64 << 20
	maxDepth = 64
)

// object is a JSON object: values are nil, bool, string, json.Number, []any or object.
type object map[string]any

// readObject reads a file that holds one JSON object. A key that occurs twice is an error:
// readers differ in which of the two they take.
func readObject(path string) (object, []byte, error) {
	info, err := os.Stat(path) // before it is opened: to open a pipe waits for a writer
	switch {
	case err != nil:
		return nil, nil, unreadable(path, err)
	case !info.Mode().IsRegular():
		return nil, nil, unreadable(path, errors.New("it is not a regular file"))
	case info.Size() > maxJSON:
		return nil, nil, fault.New("MT0660", path, "it has %d bytes, at most %d are read", info.Size(), maxJSON)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, unreadable(path, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxJSON+1))
	if err != nil {
		return nil, nil, unreadable(path, err)
	}
	if f := fault.Unfetched("MT0660", path, string(text[:min(len(text), 32)])); f != nil {
		return nil, nil, f
	}
	v, err := parseObject(text)
	if err != nil {
		return nil, nil, fault.New("MT0660", path, "it is not a JSON object that can be used").Wrap(err).Help("fetch the file again")
	}
	return v, text, nil
}

// parseObject is readObject of a text.
func parseObject(text []byte) (object, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8")
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	v, err := parseValue(dec, 0)
	if err != nil {
		return nil, err
	}
	o, ok := v.(object)
	if !ok {
		return nil, errors.New("its value is no object")
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("something follows the object")
	}
	return o, nil
}

func parseValue(dec *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it is nested deeper than %d", maxDepth)
	}
	t, err := dec.Token()
	if err != nil {
		return nil, noEnd(err)
	}
	d, ok := t.(json.Delim)
	if !ok {
		return t, nil
	}
	if d == '[' {
		list := []any{}
		for dec.More() {
			v, err := parseValue(dec, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.Token()
		return list, noEnd(err)
	}
	o := object{}
	for dec.More() {
		k, err := dec.Token()
		if err != nil {
			return nil, noEnd(err)
		}
		key := k.(string) // the decoder takes nothing else here
		if _, twice := o[key]; twice {
			return nil, fmt.Errorf("the key %q occurs twice", key)
		}
		if o[key], err = parseValue(dec, depth+1); err != nil {
			return nil, err
		}
	}
	_, err = dec.Token()
	return o, noEnd(err)
}

// noEnd words the end of a text that is cut short.
func noEnd(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
