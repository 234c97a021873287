package op

import "github.com/megatrain/mtc/runtime/tensor"

// Elems is the number of elements of a shape, with the built-in dims B and T taken from s
// (a call's types may hold the batch of the whole step, a launch runs over a micro-batch).
func (s Sizes) Elems(shape tensor.Shape) int64 {
	n := int64(1)
	for _, d := range shape {
		switch d.Name {
		case "B":
			n *= s.Batch
		case "T":
			n *= s.Seq
		default:
			n *= d.N
		}
	}
	return n
}

// Bytes is the size of a tensor with B and T taken from s.
func (s Sizes) Bytes(t tensor.Type) int64 { return s.Elems(t.Shape) * t.DType.Size() }

// Moved is the bytes of the named operands, each counted once; absent ones count nothing.
func (c *Call) Moved(s Sizes, operands ...string) int64 {
	var n int64
	seen := make(map[string]bool, len(operands))
	for _, name := range operands {
		if t, ok := c.Operand(name); ok && !seen[name] {
			seen[name] = true
			n += s.Bytes(t)
		}
	}
	return n
}

// WithCost gives a launch its cost: flops, and the bytes of everything it reads and writes.
// An add, a multiply, a comparison and a transcendental function each count as one
// floating-point operation.
func WithCost(l Launch, flops func(c *Call, s Sizes) int64) Launch {
	operands := append(append([]string(nil), l.Reads...), l.Writes...)
	l.Cost = func(c *Call, s Sizes) Cost {
		return Cost{FLOPs: flops(c, s), Bytes: c.Moved(s, operands...)}
	}
	return l
}

// PerElement counts n operations for each element of the first input.
func PerElement(n int64) func(c *Call, s Sizes) int64 {
	return func(c *Call, s Sizes) int64 { return n * s.Elems(c.In[0].Shape) }
}
