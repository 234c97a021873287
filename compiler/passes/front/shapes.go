package front

import (
	"errors"
	"strings"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Shapes applies the shape rule of every op, in forward order. B and T stay symbolic in all
// types: templates serve micro-batches and generation too. A value whose op failed has no
// shape, and what reads it is passed over.
func Shapes(s *State) {
	if s.spent {
		return
	}
	said := map[source.Span]bool{}
	for _, b := range s.units {
		u := b.unit
		for i, in := range u.Graph.Inputs {
			in.Type = u.Inputs[i].Type
		}
		for _, n := range u.Graph.Nodes {
			info := s.nodes[n]
			s.trail = info.trail
			for _, in := range n.Inputs {
				if in.Type.Shape == nil {
					info.bad = true
				}
			}
			if info.bad {
				continue
			}
			if !s.infer(n, info, said) || !s.checkExpert(n, info) {
				info.bad = true
			}
		}
		for i, g := range u.Graph.Outputs {
			u.Outputs[i].Type = g.Type
		}
	}
	s.trail = nil
	nameValues(s)
}

// infer types one node. Equal errors of other instances of a block are said once.
func (s *State) infer(n *ir.Node, info *nodeInfo, said map[source.Span]bool) bool {
	c := n.Call
	c.In = make([]tensor.Type, len(n.Inputs))
	for i, in := range n.Inputs {
		c.In[i] = in.Type
	}
	if err := c.Def.Infer(c); err != nil {
		if !said[n.Span] {
			said[n.Span] = true
			s.argError(n, info, err)
		}
		return false
	}
	if at, what, ok := s.tooLarge(n, info); !ok {
		if !said[n.Span] {
			said[n.Span] = true
			s.errorf(codeOverflow, at, "%s is too large to address", what).
				Hint("sizes in bytes must fit 63 bits")
		}
		return false
	}
	n.Out.Type = c.Out
	return true
}

// tooLarge checks the sizes of what a node makes, at the batch and sequence length in force.
func (s *State) tooLarge(n *ir.Node, info *nodeInfo) (source.Span, string, bool) {
	for _, w := range n.Call.Weights {
		if _, ok := elems(w.Shape, 1, 1); !ok {
			return n.Span, "weight " + w.Shape.String(), false
		}
	}
	if _, ok := elems(n.Call.Out.Shape, max(1, s.Model.Batch), max(1, s.Model.Seq)); !ok {
		return n.Span, "the result " + n.Call.Out.String(), false
	}
	return source.Span{}, "", true
}

// elems multiplies a shape with a check; symbolic dims get the sizes given.
func elems(shape tensor.Shape, batch, seq int64) (int64, bool) {
	n := int64(1)
	for _, d := range shape {
		k := d.N
		if d.Symbolic() {
			k = seq
			if d.Name == "B" {
				k = batch
			}
		}
		var ok bool
		if n, ok = mul(n, k); !ok || n > maxElems {
			return 0, false
		}
	}
	return n, true
}

// argError turns what a shape rule says into a diagnostic with spans.
func (s *State) argError(n *ir.Node, info *nodeInfo, err error) {
	var ae *op.ArgError
	if !errors.As(err, &ae) {
		s.errorf(codeShape, n.Span, "`%s`: %s", opText(s, n), err)
		return
	}
	if info.op != "" && len(n.Inputs) == 2 {
		s.operandError(n, info, ae)
		return
	}
	c := n.Call
	at, given := info.args[ae.Arg]
	if !given || !at.Valid() {
		at = n.Span
	}
	code := codeRange
	for i, name := range c.Inputs {
		if name != ae.Arg {
			continue
		}
		code = codeShape
		d := s.errorf(code, at, "`%s` of `%s` wants %s, got %s", ae.Arg, opText(s, n), ae.Want, ae.Got).Mark("%s", c.In[i])
		s.origin(d, at, n.Inputs[i])
		s.hint(d, ae)
		return
	}
	if ae.Arg == "" {
		d := s.errorf(codeShape, at, "`%s` wants %s, got %s", opText(s, n), ae.Want, ae.Got)
		s.hint(d, ae)
		return
	}
	d := s.errorf(code, at, "`%s` of `%s` wants %s, got %s", ae.Arg, opText(s, n), ae.Want, ae.Got)
	if text := at.Text(); given && text != "" && !strings.Contains(ae.Got, text) {
		d.Mark("%s", ae.Got)
	}
	s.hint(d, ae)
}

// operandError is a shape error of an operator: both sides with their shapes.
func (s *State) operandError(n *ir.Node, info *nodeInfo, ae *op.ArgError) {
	c := n.Call
	x, y := info.row(c.In[0]), info.row(c.In[1])
	xs, ys := info.args[c.Inputs[0]], info.args[c.Inputs[1]]
	var message string
	switch info.op {
	case "+=":
		message = "`+=` adds " + sizes(y) + " to " + sizes(x)
	case "+":
		message = "`+` adds " + sizes(x) + " and " + sizes(y)
	case "-":
		message = "`-` subtracts " + sizes(y) + " from " + sizes(x)
	default:
		message = "`*` multiplies " + sizes(x) + " and " + sizes(y)
	}
	d := s.errorf(codeShape, ys, "%s", message).Mark("%s", y)
	d.Also(xs, "%s%s", x, from(n.Inputs[0], info))
	s.origin(d, ys, n.Inputs[1])
	switch {
	case x.DType != y.DType:
		d.Hint("look the ids up first: `embed(%s, V, D)`", ys.Text())
	case info.op == "+=" && len(x.Shape) > 0:
		d.Hint("a residual branch ends in the width of what it adds to, %s", x.Shape.Last())
	case ae.Hint != "":
		d.Hint("%s", ae.Hint)
	default:
		d.Hint("the operands of `%s` have one shape", info.op)
	}
}

// row is a type as the text of an expert's block has it: of one row of a token, where memory is made for several.
func (i *nodeInfo) row(t tensor.Type) tensor.Type {
	if n := len(t.Shape) - 1; i.slots > 1 && n >= 0 && t.Shape[n].N%i.slots == 0 {
		t.Shape = t.Shape.WithLast(tensor.Dim{N: t.Shape[n].N / i.slots})
	}
	return t
}

// from says where a value came from that no op of the unit made.
func from(v *ir.Value, info *nodeInfo) string {
	if v.Node != nil || info.unit.segment {
		return ""
	}
	return ", the block's input"
}

// origin points at the op that made a value, unless the span at shows it already.
func (s *State) origin(d *diag.Diagnostic, at source.Span, v *ir.Value) {
	inside := at.File == v.Span.File && v.Span.Start >= at.Start && v.Span.End <= at.End
	if v.Node != nil && v.Span.Valid() && !inside {
		d.Also(v.Span, "made here")
	}
}

func (s *State) hint(d *diag.Diagnostic, ae *op.ArgError) {
	if ae.Hint != "" {
		d.Hint("%s", ae.Hint)
	}
}

// sizes writes a type without the names of its dims: "[B, T, 18944]".
func sizes(t tensor.Type) string {
	bare := append(tensor.Shape(nil), t.Shape...)
	for i := range bare {
		if !bare[i].Symbolic() {
			bare[i].Name = ""
		}
	}
	return tensor.Type{DType: t.DType, Shape: bare}.String()
}

// nameValues names values that no variable holds after their label or op.
func nameValues(s *State) {
	for _, b := range s.units {
		for _, n := range b.unit.Graph.Nodes {
			if n.Out.Name == "" {
				n.Out.Name = n.Label
			}
			if n.Out.Name == "" {
				n.Out.Name = n.Call.Def.Name
			}
		}
		for i, g := range b.unit.Graph.Outputs {
			b.unit.Outputs[i].Name = g.Name
		}
	}
	for _, b := range s.units {
		for i, in := range b.unit.Graph.Inputs {
			in.Name = b.unit.Inputs[i].Name
		}
	}
}
