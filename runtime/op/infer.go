package op

import (
	"fmt"
	"math/bits"

	"github.com/megatrain/mtc/runtime/tensor"
)

// Activation returns the type of a tensor input that must be an f32 [B, T, last].
func (c *Call) Activation(name string) (tensor.Type, error) {
	t, ok := c.Input(name)
	if !ok {
		return t, &ArgError{Arg: name, Want: "a tensor", Got: "nothing"}
	}
	if t.DType == tensor.I32 {
		return t, &ArgError{Arg: name, Want: "a tensor of numbers, [B, T, last]", Got: t.String(),
			Hint: "ids are looked up first: `embed(tokens, V, D)`"}
	}
	if len(t.Shape) != 3 {
		return t, &ArgError{Arg: name, Want: "a tensor [B, T, last]", Got: t.String()}
	}
	return t, nil
}

// Elementwise is the shape rule of an op whose inputs and output all have one shape. It
// sets Out and the constant fields Rows and D (the last dim).
func Elementwise(c *Call) error {
	first, err := c.Activation(c.Inputs[0])
	if err != nil {
		return err
	}
	for _, name := range c.Inputs[1:] {
		t, err := c.Activation(name)
		if err != nil {
			return err
		}
		if !t.Shape.Equal(first.Shape) {
			return &ArgError{Arg: name, Want: first.String() + ", the shape of `" + c.Inputs[0] + "`", Got: t.String()}
		}
	}
	c.Out = first
	c.Consts = []Const{RowsConst(), IntConst("D", first.Shape.Last().N)}
	return nil
}

// Positive checks that an int attribute is at least 1.
func (c *Call) Positive(name string) error {
	if n := c.Int(name); n < 1 {
		return &ArgError{Arg: name, Want: "a positive int", Got: c.Attr[name].String()}
	}
	return nil
}

// PositiveFloat checks that a float attribute is above 0 and finite.
func (c *Call) PositiveFloat(name string) error {
	if x := c.Float(name); !(x > 0 && x <= maxFloat32) {
		return &ArgError{Arg: name, Want: "a number above 0", Got: c.Attr[name].String()}
	}
	return nil
}

const maxFloat32 = 3.4028234663852886e38

// Fits checks that a weight [rows, cols] has fewer than 2^62 elements, so that offsets in
// bytes stay within an int64.
func Fits(arg string, rows, cols int64) error {
	hi, lo := bits.Mul64(uint64(rows), uint64(cols))
	if hi != 0 || lo >= 1<<60 {
		return &ArgError{Arg: arg, Want: "a weight of fewer than 2^60 elements", Got: fmt.Sprintf("%d * %d elements", rows, cols)}
	}
	return nil
}

// Constructors of constant fields.

// RowsConst is the field Rows.
func RowsConst() Const { return Const{Field: "Rows", Kind: CRows} }

// IntConst is an int field.
func IntConst(field string, n int64) Const { return Const{Field: field, Kind: CInt, Int: n} }

// FloatConst is a float32 field.
func FloatConst(field string, x float64) Const { return Const{Field: field, Kind: CFloat, Float: x} }

// BoolConst is a bool field.
func BoolConst(field string, b bool) Const { return Const{Field: field, Kind: CBool, Bool: b} }
