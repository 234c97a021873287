package front

import (
	"maps"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
)

// expert is what the ops of an expert's block run over: rows in the order of a routing.
type expert struct {
	routing *val
	attr    map[string]op.Value
	path    string // of the experts in the unit: "moe.expert"
	span    source.Span
}

// adapt turns an op of an expert's block into one over the rows of all experts: a linear gets a
// matrix and a bias for each, ops on single elements stay as they are, others are not possible.
func (x *expert) adapt(f *frame, call *op.Call, in *[]*val, info *nodeInfo, span source.Span) bool {
	s := f.e.s
	switch {
	case call.Def.Name != "linear":
		return true // checked when its shapes are known
	case info.tie != nil:
		s.errorf(codeTie, span, "the weights of experts are not tied").Also(x.span, "the expert")
		return false
	}
	attr := map[string]op.Value{"out": call.Attr["out"], "init": call.Attr["init"]}
	if call.Bool("bias") { // without one the identity of a model is what it was before there were any
		attr["bias"] = call.Attr["bias"]
	}
	for _, name := range []string{"experts", "slots", "most", "mean"} {
		attr[name] = x.attr[name]
	}
	call.Def, call.Attr = s.In.Ops.Lookup(grouped), attr
	call.Inputs = append(call.Inputs, "routing")
	info.args["routing"] = span
	*in = append(*in, x.routing)
	return true
}

// rowsOfExperts makes a norm without a weight, which sees all slots of a token as one row, one of each
// slot.
func rowsOfExperts(c *op.Call, slots int64) {
	if c.Def.Name == "rmsnorm" && !c.Bool("weight") && !c.Has("per") && len(c.In[0].Shape) == 3 {
		c.Attr = maps.Clone(c.Attr)
		c.Attr["per"] = *op.IntValue(c.In[0].Shape.Last().N / slots)
	}
}

// checkExpert checks, with its shapes known, that an op of an expert's block works on single
// elements, or single rows, and owns no weight.
func (s *State) checkExpert(n *ir.Node, info *nodeInfo) bool {
	c := n.Call
	if info.expert == "" || c.Def.Name == grouped {
		return true
	}
	norm := c.Def.Name == "rmsnorm" && !c.Bool("weight") && c.Out.Shape.Last().N/info.slots%c.Int("per") == 0
	plain := c.Def.RowWise && len(c.Weights) == 0 && (len(c.Saved) == 0 || norm)
	for _, k := range c.Consts {
		plain = plain && k.Kind != op.CBatch && k.Kind != op.CSeq && k.Kind != op.CPos
	}
	for _, t := range c.In {
		plain = plain && t.Shape.Equal(c.Out.Shape)
	}
	if !plain {
		d := s.errorf(codeForm, n.Span, "`%s` cannot stand in an expert", opText(s, n)).
			Note("an expert runs over rows that are sorted by expert: it holds linears, ops on single elements, and `rmsnorm` without a weight")
		if c.Def.Name == "rmsnorm" && c.Bool("weight") {
			d.Hint("write `weight = false`: the linear behind it can take the weight's part")
		} else {
			d.Hint("move it before `moe`, or behind it")
		}
	}
	return plain
}
