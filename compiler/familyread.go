package compiler

import (
	"fmt"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
)

// readFamily reads a family's parameters off a graph, nil when there is not what they are read
// from. They are a guess that the comparison of graphs proves.
func readFamily(m *ir.Model, family string) []plan.Value {
	var r graphReader
	for _, u := range m.Units {
		if u.Kind == ir.HeadUnit {
			for _, p := range u.Params {
				r.tied = r.tied || p.Uses > 1
			}
		}
		for _, n := range u.Graph.Nodes {
			r.node(n, u.Kind)
		}
	}
	if r.attention == nil || r.embed == nil {
		return nil
	}
	switch family {
	case "gpt2":
		return r.gpt2()
	case "llama":
		return r.llama()
	case "mixtral", "qwen3_moe":
		return r.mixture(family)
	}
	return nil
}

// graphReader notes the nodes that constants are read from: the first of each kind.
type graphReader struct {
	layers                                   int
	embed, position, attention, rope, norm   *ir.Node
	layernorm, activation, headNorm, project *ir.Node
	output, gate                             *ir.Node   // the first linears behind the first attention
	attentions                               []*ir.Node // one for each layer
	router, expert                           *ir.Node
	expertBias                               bool
	tied                                     bool
}

func (r *graphReader) node(n *ir.Node, kind ir.UnitKind) {
	first := func(at **ir.Node) {
		if *at == nil {
			*at = n
		}
	}
	switch n.Call.Def.Name {
	case "embed":
		if n.Inputs[0].Name == "position" {
			first(&r.position)
		} else {
			first(&r.embed)
		}
	case "attention":
		r.layers++
		first(&r.attention)
		r.attentions = append(r.attentions, n)
	case "rope":
		first(&r.rope)
	case "rmsnorm":
		if v, ok := n.Call.Attr["per"]; ok && !v.IsNone() {
			first(&r.headNorm)
		} else {
			first(&r.norm)
		}
	case "layernorm":
		first(&r.layernorm)
	case "gelu", "silu":
		first(&r.activation)
	case "moe_select":
		first(&r.router)
	case "grouped":
		first(&r.expert)
		r.expertBias = r.expertBias || n.Call.Bool("bias")
	case "linear":
		switch {
		case kind != ir.LayerUnit:
		case r.attention == nil:
			first(&r.project)
		case r.output == nil:
			r.output = n
		default:
			first(&r.gate)
		}
	}
}

func (r *graphReader) gpt2() []plan.Value {
	if r.position == nil || r.layernorm == nil || r.activation == nil || r.router != nil {
		return nil
	}
	return []plan.Value{
		attr("D", r.embed, "dim"), {Name: "L", Text: fmt.Sprint(r.layers)}, attr("H", r.attention, "heads"),
		attr("V", r.embed, "rows"), attr("context", r.position, "rows"), width("F", r.activation), attr("eps", r.layernorm, "eps"),
		{Name: "tied", Text: fmt.Sprint(r.tied)},
	}
}

// llamaLayer are the parameters that all families with Llama's attention have.
func (r *graphReader) llamaLayer() []plan.Value {
	if r.rope == nil || r.norm == nil || r.activation == nil || r.project == nil {
		return nil
	}
	kv := attr("KV", r.attention, "kv")
	if kv.Text == "none" {
		kv.Text = attr("H", r.attention, "heads").Text
	}
	return []plan.Value{
		attr("D", r.embed, "dim"), {Name: "L", Text: fmt.Sprint(r.layers)}, attr("H", r.attention, "heads"), kv,
		width("F", r.activation), attr("V", r.embed, "rows"), attr("hd", r.rope, "hd"), attr("theta", r.rope, "theta"),
		attr("eps", r.norm, "eps"), attr("scaling", r.rope, "scaling"), r.window(),
		{Name: "tied", Text: fmt.Sprint(r.tied)},
	}
}

func (r *graphReader) llama() []plan.Value {
	out := r.llamaLayer()
	if out == nil || r.router != nil || r.output == nil || r.gate == nil {
		return nil
	}
	from, every := r.windows()
	return append(out, attr("qkv_bias", r.project, "bias"), attr("o_bias", r.output, "bias"), attr("mlp_bias", r.gate, "bias"),
		plan.Value{Name: "qk_norm", Text: fmt.Sprint(r.headNorm != nil)},
		plan.Value{Name: "window_from", Text: fmt.Sprint(from)}, plan.Value{Name: "full_every", Text: fmt.Sprint(every)})
}

// window is the window of the first layer that has one.
func (r *graphReader) window() plan.Value {
	for _, n := range r.attentions {
		if v := attr("window", n, "window"); v.Text != "none" {
			return v
		}
	}
	return plan.Value{Name: "window", Text: "none"}
}

// windows says in which layers the window is: from the first one that has it on, but for every
// so-many-th from there; one more than there are layers where no such layer follows.
func (r *graphReader) windows() (from, every int) {
	var list []bool
	for _, n := range r.attentions {
		list = append(list, attr("window", n, "window").Text != "none")
	}
	return plan.Windows(list)
}

func (r *graphReader) mixture(family string) []plan.Value {
	out := r.llamaLayer()
	if out == nil || r.router == nil || r.expert == nil || r.expertBias || (r.headNorm != nil) != (family == "qwen3_moe") {
		return nil
	}
	for i := range out {
		if out[i].Name == "F" {
			out[i] = attr("F", r.expert, "out")
		}
	}
	out = append(out, attr("E", r.router, "experts"), attr("K", r.router, "k"), attr("alpha", r.router, "alpha"))
	if family == "mixtral" {
		return out
	}
	perHead := attr("", r.headNorm, "per").Text == attr("", r.rope, "hd").Text
	return append(out, plan.Value{Name: "head_norm", Text: fmt.Sprint(perHead)}, attr("renorm", r.router, "renorm"), attr("attn_bias", r.project, "bias"))
}

// attr is a constant of a call as the value of a family's parameter.
func attr(name string, n *ir.Node, param string) plan.Value {
	v, ok := n.Call.Attr[param]
	if !ok {
		for _, p := range n.Call.Def.Params {
			if p.Name == param && p.Default != nil {
				v = *p.Default
			}
		}
	}
	return plan.Value{Name: name, Text: familyText(v)}
}

// familyText writes a constant so that it can be read back.
func familyText(v op.Value) string {
	if v.Kind == op.VNone {
		return "none"
	}
	return constantText(v)
}

// width is the last dim of a node's value.
func width(name string, n *ir.Node) plan.Value {
	return plan.Value{Name: name, Text: fmt.Sprint(n.Out.Type.Shape.Last().N)}
}
