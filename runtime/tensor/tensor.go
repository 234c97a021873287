// Package tensor describes tensors: element type and shape in named dims. It holds no data.
package tensor

import (
	"fmt"
	"strings"
)

// DType is an element type.
type DType uint8

// The element types.
const (
	F32 DType = iota
	BF16
	I32
)

func (d DType) String() string { return [...]string{"f32", "bf16", "i32"}[d] }

// Size is the number of bytes of one element.
func (d DType) Size() int64 { return [...]int64{4, 2, 4}[d] }

// Dim is one dimension: a size and the name it has in the text ("" when it has none).
// The built-in dims B (rows of the batch) and T (sequence length) have N = 0 while they
// are symbolic.
type Dim struct {
	Name string
	N    int64
}

// Symbolic reports whether the size is not known.
func (d Dim) Symbolic() bool { return d.N == 0 }

// String is "B" for a symbolic dim, "D = 768" for a named one, else "768".
func (d Dim) String() string {
	switch {
	case d.N == 0:
		return d.Name
	case d.Name == "" || d.Name == "B" || d.Name == "T":
		if d.Name != "" {
			return d.Name
		}
		return fmt.Sprint(d.N)
	default:
		return fmt.Sprintf("%s = %d", d.Name, d.N)
	}
}

// Shape is a list of dims, outermost first.
type Shape []Dim

func (s Shape) String() string {
	parts := make([]string, len(s))
	for i, d := range s {
		parts[i] = d.String()
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// Last is the innermost dim, or the zero Dim of a scalar.
func (s Shape) Last() Dim {
	if len(s) == 0 {
		return Dim{}
	}
	return s[len(s)-1]
}

// Equal compares sizes; symbolic dims compare by name.
func (s Shape) Equal(t Shape) bool {
	if len(s) != len(t) {
		return false
	}
	for i := range s {
		if s[i].N != t[i].N || s[i].N == 0 && s[i].Name != t[i].Name {
			return false
		}
	}
	return true
}

// Elems is the product of the sizes, which must be known.
func (s Shape) Elems() int64 {
	n := int64(1)
	for _, d := range s {
		n *= d.N
	}
	return n
}

// WithLast returns s with another innermost dim.
func (s Shape) WithLast(d Dim) Shape {
	t := append(Shape(nil), s...)
	t[len(t)-1] = d
	return t
}

// Type is an element type and a shape.
type Type struct {
	DType DType
	Shape Shape
}

func (t Type) String() string {
	if t.DType == F32 {
		return t.Shape.String()
	}
	return t.DType.String() + t.Shape.String()
}

// Bytes is the size in memory; the shape must be known.
func (t Type) Bytes() int64 { return t.Shape.Elems() * t.DType.Size() }
