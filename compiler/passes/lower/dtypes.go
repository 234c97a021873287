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
//	a router's logits and gates, their gradients          f32
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
		for i, v := range u.Graph.Inputs {
			v.Type = u.Inputs[i].Type // marked before, or f32 where its op says so
		}
		for _, n := range u.Graph.Nodes {
			n.Call.DType = o.DType
			for i, v := range n.Inputs {
				n.Call.In[i] = v.Type
			}
			retype(n.Call)
			n.Out.Type = n.Call.Out
		}
		for i, v := range u.Outputs {
			v.Type = u.Graph.Outputs[i].Type
		}
	}
}

// retype gives the results of an inferred call the element types of their roles; inputs have
// those of the values they are. Weights have no type of their own: Call.Operand gives them the
// call's.
func retype(c *op.Call) {
	if c.Def.F32 {
		return
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
