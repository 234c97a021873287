// Package safetensors reads and writes the safetensors format: an 8-byte little-endian header
// length, a JSON header that names tensors with dtype, shape and byte range, then their data.
//
// The reader is strict. It refuses, with the file and what is wrong, any header that the
// format does not allow (overlaps, holes, ranges outside the file, sizes that do not match
// the shape, names that occur twice), so that what it accepts can be read without further
// checks. Its memory is bounded by MaxHeader, whatever a header claims. The writer streams
// tensors from memory that is already there; nothing is doubled.
//
// Errors are *fault.Error with code MT0624 (malformed file) or MT0602 (unreadable file).
package safetensors

import (
	"fmt"
	"math"

	"github.com/megatrain/mtc/runtime/fault"
)

// MaxHeader is the largest header that is read, enough for some 100,000 tensors.
const MaxHeader = 16 << 20

// maxRank bounds the dims of a tensor.
const maxRank = 16

// sizes are the bytes of one element of each dtype of the format.
var sizes = map[string]int64{
	"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1,
	"I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1,
}

// Tensor is a named tensor of a file.
type Tensor struct {
	Name  string
	DType string // "F32", "BF16", "I32", ...
	Shape []int64
	Bytes int64 // size of its data
	off   int64 // of its data in the file
}

// Elems is the number of elements.
func (t *Tensor) Elems() int64 { return t.Bytes / sizes[t.DType] }

// byteSize is the size of a tensor's data, or an error when dtype or shape cannot be.
func byteSize(dtype string, shape []int64) (int64, error) {
	n, ok := sizes[dtype]
	if !ok {
		return 0, fmt.Errorf("dtype %q is not one of the format's", dtype)
	}
	if len(shape) > maxRank {
		return 0, fmt.Errorf("%d dims, at most %d are read", len(shape), maxRank)
	}
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("a dim of %d", d)
		}
		if d > 0 && n > math.MaxInt64/d {
			return 0, fmt.Errorf("the shape %v has more than 2^63 bytes", shape)
		}
		n *= d
	}
	return n, nil
}

func malformed(path, format string, args ...any) *fault.Error {
	return fault.New("MT0624", path, "not a whole safetensors file: "+format, args...).
		Help("fetch or write the file again")
}
