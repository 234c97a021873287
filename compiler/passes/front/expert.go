package front

import (
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
// matrix and a bias for each, a norm a weight and a bias, ops on single elements stay as they are, others are
// not possible.
func (x *expert) adapt(f *frame, call *op.Call, in *[]*val, info *nodeInfo, span source.Span) bool {
	s := f.e.s
	attr := map[string]op.Value{}
	take := func(names ...string) {
		for _, name := range names {
			if v, ok := call.Attr[name]; ok {
				attr[name] = v
			}
		}
	}
	to := grouped
	switch call.Def.Name {
	case "linear":
		if info.tie != nil {
			s.errorf(codeTie, span, "the weights of experts are not tied").Also(x.span, "the expert")
			return false
		}
		take("out", "init")
		if call.Bool("bias") { // without one the identity of a model is what it was before there were any
			take("bias")
		}
	case "rmsnorm", "layernorm":
		to = groupedNorm
		take("eps", "per", "weight", "bias")
		if call.Def.Name == "layernorm" {
			attr["center"] = *op.BoolValue(true)
		}
	default:
		return true // checked when its shapes are known
	}
	for _, name := range []string{"experts", "slots", "most", "mean"} {
		attr[name] = x.attr[name]
	}
	info.written = call.Def.Name
	call.Def, call.Attr = s.In.Ops.Lookup(to), attr
	call.Inputs = append(call.Inputs, "routing")
	info.args["routing"] = span
	*in = append(*in, x.routing)
	return true
}

// checkExpert checks, with its shapes known, that an op of an expert's block works on single
// elements and owns no weight.
func (s *State) checkExpert(n *ir.Node, info *nodeInfo) bool {
	c := n.Call
	if info.expert == "" || c.Def.Name == grouped || c.Def.Name == groupedNorm {
		return true
	}
	plain := c.Def.RowWise && len(c.Weights) == 0 && len(c.Saved) == 0
	for _, k := range c.Consts {
		plain = plain && k.Kind != op.CBatch && k.Kind != op.CSeq && k.Kind != op.CPos
	}
	for _, t := range c.In {
		plain = plain && t.Shape.Equal(c.Out.Shape)
	}
	if !plain {
		s.errorf(codeForm, n.Span, "`%s` cannot stand in an expert", opText(s, n)).
			Note("an expert runs over rows that are sorted by expert: it holds linears, norms, and ops on single elements").
			Hint("move it before `moe`, or behind it")
	}
	return plain
}
