package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/megatrain/mtc/runtime/fault"
)

// raw builds a file from a header text and the size of its data.
func raw(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	return append(b, make([]byte, data)...)
}

func read(b []byte) (*File, error) { return Read("f", bytes.NewReader(b), int64(len(b))) }

func sample() ([]byte, []Entry) {
	entries := []Entry{
		{Name: "layer[0].q.weight", DType: "F32", Shape: []int64{2, 3}, Data: bytes.Repeat([]byte{1, 2, 3, 4}, 6)},
		{Name: "scalar", DType: "I32", Data: []byte{5, 0, 0, 0}},
		{Name: "none", DType: "F32", Shape: []int64{0, 7}},
		{Name: "half \"é\"", DType: "BF16", Shape: []int64{3}, Data: []byte{0x80, 0x3f, 0x00, 0xc0, 0x80, 0x7f}},
	}
	var b bytes.Buffer
	if err := Write(&b, map[string]string{"format": "pt", "a": "b"}, entries); err != nil {
		panic(err)
	}
	return b.Bytes(), entries
}

func TestWrittenFilesReadBack(t *testing.T) {
	text, entries := sample()
	f, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]string{"format": "pt", "a": "b"}, f.Meta); d != "" {
		t.Error(d)
	}
	if len(f.Tensors) != len(entries) {
		t.Fatalf("%d tensors of %d", len(f.Tensors), len(entries))
	}
	for _, e := range entries {
		got := f.Lookup(e.Name)
		if got == nil || got.DType != e.DType || len(got.Shape) != len(e.Shape) {
			t.Fatalf("%s: %+v", e.Name, got)
		}
		data, err := io.ReadAll(f.Data(got))
		if err != nil || !bytes.Equal(data, e.Data) {
			t.Errorf("%s: %v, %v", e.Name, data, err)
		}
	}
	if n := binary.LittleEndian.Uint64(text); n%8 != 0 {
		t.Errorf("the data starts at byte %d", 8+n)
	}
	n, err := Size(map[string]string{"format": "pt", "a": "b"}, entries)
	if err != nil || n != int64(len(text)) {
		t.Errorf("Size says %d, %v; %d were written", n, err, len(text))
	}
	half, err := f.F32("half \"é\"")
	if err != nil || half[0] != 1 || half[1] != -2 {
		t.Errorf("bf16 reads as %v, %v", half, err)
	}
	if v, err := f.I32("scalar"); err != nil || v[0] != 5 {
		t.Errorf("i32 reads as %v, %v", v, err)
	}
	for _, name := range []string{"scalar", "missing"} {
		var fe *fault.Error
		if _, err := f.F32(name); !errors.As(err, &fe) || fe.Code != "MT0625" {
			t.Errorf("%s as F32: %v", name, err)
		}
	}
}

func TestStreamedEntriesEqualEntriesFromMemory(t *testing.T) {
	want, entries := sample()
	for i := range entries {
		data := entries[i].Data
		entries[i].Data = nil
		entries[i].Stream = func(w io.Writer) error {
			for _, c := range data {
				if _, err := w.Write([]byte{c}); err != nil {
					return err
				}
			}
			return nil
		}
	}
	var b bytes.Buffer
	if err := Write(&b, map[string]string{"format": "pt", "a": "b"}, entries); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Error("the files differ")
	}
	entries[0].Stream = func(w io.Writer) error { _, err := w.Write([]byte{1}); return err }
	if err := Write(io.Discard, nil, entries); err == nil {
		t.Error("a stream of too few bytes was accepted")
	}
}

func TestWriterRefuses(t *testing.T) {
	for name, entries := range map[string][]Entry{
		"a short tensor":   {{Name: "a", DType: "F32", Shape: []int64{2}, Data: make([]byte, 4)}},
		"a name twice":     {{Name: "a", DType: "U8", Shape: []int64{0}}, {Name: "a", DType: "U8", Shape: []int64{0}}},
		"a reserved name":  {{Name: "__metadata__", DType: "U8", Shape: []int64{0}}},
		"a dtype":          {{Name: "a", DType: "f32", Shape: []int64{0}}},
		"a negative dim":   {{Name: "a", DType: "U8", Shape: []int64{-1}}},
		"a name not UTF-8": {{Name: "\xff", DType: "U8", Shape: []int64{0}}},
	} {
		var b bytes.Buffer
		if err := Write(&b, nil, entries); err == nil || b.Len() > 0 {
			t.Errorf("%s: %v after %d bytes", name, err, b.Len())
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	one := func(member string) string { return `{"a":{` + member + `}}` }
	for _, c := range []struct {
		name   string
		file   []byte
		reason string
	}{
		{"an empty file", nil, "0 bytes"},
		{"seven bytes", make([]byte, 7), "7 bytes"},
		{"a header past the end", raw("", 0)[:8:8], "is not JSON"},
		{"a length past the end", append([]byte{9, 0, 0, 0, 0, 0, 0, 0}, "{}      "...), "claims 9 bytes, 8 follow"},
		{"a length of 2^64-1", append(bytes.Repeat([]byte{0xff}, 8), "{}"...), "2 follow"},
		{"no JSON", raw("hello", 0), "not JSON"},
		{"an array", raw("[]", 0), "where"},
		{"text behind", raw("{} x", 0), "goes on"},
		{"a second value", raw("{}{}", 0), "goes on"},
		{"an unclosed header", raw(`{"a":`, 0), "not JSON"},
		{"invalid UTF-8", raw("{\"\xff\":1}", 0), "UTF-8"},
		{"a tensor that is a number", raw(`{"a":1}`, 0), "where"},
		{"an unknown dtype", raw(one(`"dtype":"F31","shape":[1],"data_offsets":[0,4]`), 4), "F31"},
		{"no dtype", raw(one(`"shape":[1],"data_offsets":[0,4]`), 4), "lacks"},
		{"an unknown key", raw(one(`"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1`), 4), `unknown key "x"`},
		{"a key twice", raw(one(`"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]`), 4), `two "dtype"`},
		{"a name twice", raw(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), "twice"},
		{"metadata twice", raw(`{"__metadata__":{},"__metadata__":{}}`, 0), "twice"},
		{"metadata that is no string", raw(`{"__metadata__":{"a":1}}`, 0), "string"},
		{"a negative dim", raw(one(`"dtype":"F32","shape":[-1],"data_offsets":[0,4]`), 4), "whole number"},
		{"a fraction", raw(one(`"dtype":"F32","shape":[1.5],"data_offsets":[0,4]`), 4), "whole number"},
		{"a shape over 2^63", raw(one(`"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]`), 4), "2^63"},
		{"too many dims", raw(one(`"dtype":"F32","shape":[`+strings.Repeat("1,", 16)+`1],"data_offsets":[0,4]`), 4), "more than 16"},
		{"a range backwards", raw(one(`"dtype":"F32","shape":[1],"data_offsets":[4,0]`), 4), "not a range"},
		{"a range of one", raw(one(`"dtype":"F32","shape":[1],"data_offsets":[4]`), 4), "not a range"},
		{"a size unlike the shape", raw(one(`"dtype":"F32","shape":[2],"data_offsets":[0,4]`), 4), "takes 8 bytes"},
		{"data cut short", raw(one(`"dtype":"F32","shape":[2],"data_offsets":[0,8]`), 7), "1 bytes behind the end"},
		{"data behind", raw(one(`"dtype":"F32","shape":[1],"data_offsets":[0,4]`), 5), "after the last"},
		{"a hole", raw(one(`"dtype":"F32","shape":[1],"data_offsets":[4,8]`), 8), "before tensor"},
		{"an overlap", raw(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3), "overlap"},
		{"offsets over 2^63", raw(one(`"dtype":"F32","shape":[1],"data_offsets":[9223372036854775808,9223372036854775812]`), 4), "whole number"},
	} {
		_, err := read(c.file)
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != "MT0624" || !strings.Contains(f.Message, c.reason) {
			t.Errorf("%s: %v, wanted MT0624 with %q", c.name, err, c.reason)
		}
	}
}

func TestReaderBoundsTheHeader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "big.safetensors")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	// A sparse file that is large enough for the header it claims.
	if _, err := f.Write(binary.LittleEndian.AppendUint64(nil, MaxHeader+1)); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(MaxHeader + 100); err != nil {
		t.Fatal(err)
	}
	f.Close()
	var fe *fault.Error
	if _, err := Open(path); !errors.As(err, &fe) || !strings.Contains(fe.Message, "at most") {
		t.Errorf("got %v", err)
	}
	for _, p := range []string{filepath.Dir(path), path + "x"} {
		if _, err := Open(p); !errors.As(err, &fe) || fe.Code != "MT0602" {
			t.Errorf("%s: %v", p, err)
		}
	}
}

// FuzzRead feeds arbitrary bytes: they are refused with a fault, or all tensors can be read,
// cover the file, and writing them again gives a file that says the same.
func FuzzRead(f *testing.F) {
	text, _ := sample()
	f.Add(text)
	f.Add(raw("{}", 0))
	f.Add(raw(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"__metadata__":{"k":"v"}}  `, 2))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := read(b)
		if err != nil {
			var fe *fault.Error
			if !errors.As(err, &fe) {
				t.Fatalf("not a fault: %v", err)
			}
			return
		}
		total := file.HeaderBytes()
		var entries []Entry
		for i := range file.Tensors {
			ten := &file.Tensors[i]
			data, err := io.ReadAll(file.Data(ten))
			if err != nil || int64(len(data)) != ten.Bytes {
				t.Fatalf("%q: %d bytes, %v", ten.Name, len(data), err)
			}
			total += ten.Bytes
			entries = append(entries, Entry{Name: ten.Name, DType: ten.DType, Shape: ten.Shape, Data: data})
		}
		if total != file.Size {
			t.Fatalf("tensors end at %d of %d", total, file.Size)
		}
		var out bytes.Buffer
		if err := Write(&out, file.Meta, entries); err != nil {
			t.Fatalf("cannot be written again: %v", err)
		}
		again, err := read(out.Bytes())
		if err != nil {
			t.Fatalf("cannot be read again: %v", err)
		}
		if len(again.Tensors) != len(file.Tensors) {
			t.Fatal("tensors were lost")
		}
	})
}
