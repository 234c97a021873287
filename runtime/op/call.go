package op

import "github.com/megatrain/mtc/runtime/tensor"

// Int returns an int attribute; 0 when it is absent or none.
func (c *Call) Int(name string) int64 { return c.Attr[name].Int }

// Float returns an int or float attribute as float64.
func (c *Call) Float(name string) float64 { return c.Attr[name].Num() }

// Bool returns a flag.
func (c *Call) Bool(name string) bool { return c.Attr[name].Bool }

// Word returns the name of a word or constructor attribute; "" when it is none.
func (c *Call) Word(name string) string { return c.Attr[name].Str }

// Has reports whether an attribute is present and not none.
func (c *Call) Has(name string) bool {
	v, ok := c.Attr[name]
	return ok && !v.IsNone()
}

// DimOf returns an int attribute as a dim, with the name it has in the text.
func (c *Call) DimOf(name string) tensor.Dim {
	v := c.Attr[name]
	return tensor.Dim{Name: v.Dim, N: v.Int}
}

// Operand returns the type of any operand of an inferred call: an input, a weight, the
// output "y", a saved value, a table, a state buffer, or the gradient of one of these. ok is
// false when the call has no such operand (the bias of a linear without one).
func (c *Call) Operand(name string) (t tensor.Type, ok bool) {
	if base, isGrad := gradOf(name); isGrad {
		t, ok = c.Operand(base)
		if c.hasWeight(base) {
			t.DType = tensor.F32
		}
		return t, ok
	}
	if t, ok = c.Input(name); ok {
		return t, true
	}
	if name == "y" {
		return c.Out, true
	}
	for _, w := range c.Weights {
		if w.Name == name {
			return tensor.Type{DType: c.DType, Shape: w.Shape}, true
		}
	}
	for _, tb := range c.Tables {
		if tb.Operand == name {
			return tb.Type, true
		}
	}
	for _, list := range [][]Operand{c.Saved, c.State} {
		for _, o := range list {
			if o.Name == name {
				return o.Type, true
			}
		}
	}
	return tensor.Type{}, false
}

func (c *Call) hasWeight(name string) bool {
	for _, w := range c.Weights {
		if w.Name == name {
			return true
		}
	}
	return false
}

func gradOf(name string) (base string, ok bool) {
	if len(name) > 2 && name[:2] == "d." {
		return name[2:], true
	}
	return name, false
}

// ByName looks up the launcher of a Def by its function's name; nil when it has none.
func (d *Def) ByName(fn string) *Launch {
	if d.Forward.Func == fn {
		return &d.Forward
	}
	if d.Cached != nil && d.Cached.Func == fn {
		return d.Cached
	}
	if d.Advance != nil && d.Advance.Func == fn {
		return d.Advance
	}
	for _, list := range [][]Launch{d.Backward, d.Fused} {
		for i := range list {
			if list[i].Func == fn {
				return &list[i]
			}
		}
	}
	return nil
}
