package safetensors

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"

	"github.com/megatrain/mtc/runtime/fault"
)

// File is an open safetensors file with a checked header.
type File struct {
	Path    string
	Tensors []Tensor // in the order of their data, which they cover without holes
	Meta    map[string]string
	Size    int64 // of the whole file
	r       io.ReaderAt
	close   func() error
	byName  map[string]int
}

// Open opens and checks a file. What it is is asked before it is opened: to open a pipe waits
// for somebody to write into it.
func Open(path string) (*File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	if info, err = f.Stat(); err != nil {
		f.Close()
		return nil, unreadable(path, err)
	}
	out, err := Read(path, f, info.Size())
	if err != nil {
		f.Close()
		return nil, err
	}
	out.close = f.Close
	return out, nil
}

// Read checks the header of size bytes behind r; path is for messages.
func Read(path string, r io.ReaderAt, size int64) (*File, error) {
	if size < 8 {
		return nil, malformed(path, "it has %d bytes, the length of the header alone takes 8", size)
	}
	var begin [32]byte
	if _, err := r.ReadAt(begin[:min(size, 32)], 0); err != nil {
		return nil, unreadable(path, err)
	}
	if f := fault.Unfetched("MT0624", path, string(begin[:])); f != nil {
		return nil, f
	}
	n := binary.LittleEndian.Uint64(begin[:])
	switch {
	case n > uint64(size-8):
		return nil, malformed(path, "its header claims %d bytes, %d follow", n, size-8).At(0)
	case n > MaxHeader:
		return nil, malformed(path, "its header claims %d bytes, at most %d are read", n, MaxHeader).At(0)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(io.NewSectionReader(r, 8, size-8), text); err != nil {
		return nil, unreadable(path, err)
	}
	ts, meta, err := parseHeader(text)
	if err == nil {
		err = tile(ts, size-8-int64(n))
	}
	if err != nil {
		return nil, malformed(path, "%v", err)
	}
	f := &File{Path: path, Tensors: ts, Meta: meta, Size: size, r: r, byName: map[string]int{}}
	for i := range ts {
		ts[i].off += 8 + int64(n)
		f.byName[ts[i].Name] = i
	}
	return f, nil
}

// Header checks the part of a file before its data alone, length word included, and returns
// what it says; path is for messages.
func Header(path string, header []byte) ([]Tensor, map[string]string, error) {
	if len(header) < 8 || binary.LittleEndian.Uint64(header) != uint64(len(header)-8) {
		return nil, nil, malformed(path, "its length word does not give its %d bytes", len(header))
	}
	ts, meta, err := parseHeader(header[8:])
	if err == nil {
		var size int64
		for i := range ts {
			size = max(size, ts[i].off+ts[i].Bytes)
		}
		err = tile(ts, size)
	}
	if err != nil {
		return nil, nil, malformed(path, "%v", err)
	}
	return ts, meta, nil
}

// Lookup returns a tensor by name, nil when there is none.
func (f *File) Lookup(name string) *Tensor {
	if i, ok := f.byName[name]; ok {
		return &f.Tensors[i]
	}
	return nil
}

// Data reads the bytes of a tensor as they lie in the file (little-endian).
func (f *File) Data(t *Tensor) io.Reader { return io.NewSectionReader(f.r, t.off, t.Bytes) }

// DataAt is Data for reading at any place.
func (f *File) DataAt(t *Tensor) io.ReaderAt { return io.NewSectionReader(f.r, t.off, t.Bytes) }

// All reads the whole file from its first byte.
func (f *File) All() io.Reader { return io.NewSectionReader(f.r, 0, f.Size) }

// HeaderBytes is where the first tensor's data starts.
func (f *File) HeaderBytes() int64 {
	if len(f.Tensors) == 0 {
		return f.Size
	}
	return f.Tensors[0].off
}

// F32 reads a tensor of dtype F32, F64 (rounded) or BF16 as float32.
func (f *File) F32(name string) ([]float32, error) {
	t := f.Lookup(name)
	if t == nil {
		return nil, fault.New("MT0625", f.Path, "there is no tensor %q", name)
	}
	switch t.DType {
	case "F32", "F64", "BF16":
	default:
		return nil, fault.New("MT0625", f.Path, "tensor %q is %s, not a float that can be read as F32", name, t.DType)
	}
	raw := make([]byte, t.Bytes)
	if _, err := io.ReadFull(f.Data(t), raw); err != nil {
		return nil, unreadable(f.Path, err)
	}
	out := make([]float32, t.Elems())
	for i := range out {
		switch t.DType {
		case "F32":
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		case "F64":
			out[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:])))
		default:
			out[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2*i:])) << 16)
		}
	}
	return out, nil
}

// I32 reads a tensor of dtype I32.
func (f *File) I32(name string) ([]int32, error) {
	t := f.Lookup(name)
	if t == nil || t.DType != "I32" {
		return nil, fault.New("MT0625", f.Path, "there is no I32 tensor %q", name)
	}
	raw := make([]byte, t.Bytes)
	if _, err := io.ReadFull(f.Data(t), raw); err != nil {
		return nil, unreadable(f.Path, err)
	}
	out := make([]int32, t.Elems())
	for i := range out {
		out[i] = int32(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out, nil
}

// Close closes a file that Open opened.
func (f *File) Close() error {
	if f.close == nil {
		return nil
	}
	return f.close()
}

func unreadable(path string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fault.New("MT0602", path, "cannot be read").Wrap(err)
}
