package lower

import (
	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Dtypes gives every value its element type by its role:
//
//	activations, their gradients, caches of generation    what the device computes in
//	weights on the device                                 the same
//	statistics that an op saves (inv, mean, lse), tables  f32
//	gradients of weights, partial losses, scalars         f32, f64
//	ids                                                   i32
//
// It marks the model's values and the calls of every graph. Whoever infers a call again with
// other sizes takes the marks along (retype), so that sizes, offsets and costs follow.
func Dtypes(m *ir.Model, o Options) {
	if o.DType == tensor.F32 {
		return // what shape rules say already
	}
	mark := func(v *ir.Value) { v.Type = activation(v.Type, o.DType) }
	for _, v := range m.Values {
		mark(v)
	}
	for _, u := range m.Units {
		for _, v := range u.Graph.Inputs {
			mark(v)
		}
		for _, n := range u.Graph.Nodes {
			n.Call.DType = o.DType
			retype(n.Call)
			mark(n.Out)
		}
		for i, v := range u.Outputs {
			v.Type = u.Graph.Outputs[i].Type
		}
	}
}

// retype gives the operands of an inferred call the element types of their roles. Weights
// have no type of their own: Call.Operand gives them the call's.
func retype(c *op.Call) {
	for i, t := range c.In {
		c.In[i] = activation(t, c.DType)
	}
	c.Out = activation(c.Out, c.DType)
	for i, s := range c.State {
		c.State[i].Type = activation(s.Type, c.DType)
	}
}

// activation is the type of an activation: ids stay ids.
func activation(t tensor.Type, d tensor.DType) tensor.Type {
	if t.DType != tensor.I32 {
		t.DType = d
	}
	return t
}
