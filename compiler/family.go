package compiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/models"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
)

// hfMap is the name of the weights map that imports and exports use.
const hfMap = "hf"

// Foreign is the model's map to a Hugging Face checkpoint as plain data, nil when it has none.
func Foreign(m *ir.Model) []plan.Foreign {
	for _, w := range m.Maps {
		if w.Name != hfMap {
			continue
		}
		var out []plan.Foreign
		for _, e := range w.Entries {
			f := plan.Foreign{Op: e.Op, Names: e.Names, Also: e.Also}
			for _, p := range e.Targets {
				f.Params = append(f.Params, p.Path)
			}
			out = append(out, f)
		}
		return out
	}
	return nil
}

// family finds out as which model of a family others can have this one. The parameters of the
// family are read off the graph; then the family is compiled with them, and its graph must be
// this one, op by op. So what is said of a model holds whatever its text looks like.
func family(s *state) {
	if s.trial == nil {
		return
	}
	m := s.res.Model
	s.foreign = Foreign(m)
	own := canonical(m)
	var why []string
	for _, f := range models.Families {
		values := readFamily(m, f.Name)
		if values == nil {
			continue
		}
		set := make([]string, len(values))
		for i, v := range values {
			set[i] = v.Name + "=" + v.Text
		}
		theirs := s.check(Options{Path: f.Name + ".mt", Text: []byte(f.Text), Model: f.Name, Set: set})
		if theirs == nil {
			continue
		}
		other := canonical(theirs)
		if at, mine, their := firstDifference(own.text, other.text); at {
			why = append(why, fmt.Sprintf("%s has `%s` where this model has `%s`", f.Name, their, mine))
			continue
		}
		theirMap := renamed(Foreign(theirs), other.params, own.params)
		if s.foreign == nil {
			s.foreign = theirMap
		}
		if diff := mapDifference(s.foreign, theirMap); diff != "" {
			why = append(why, diff)
			continue
		}
		s.family = plan.Family{Name: f.Name, Values: values}
		return
	}
	s.family = plan.Family{Why: strings.Join(why, "; ")}
	if s.family.Why == "" {
		s.family.Why = "it is built unlike every known family"
	}
}

// canonicalGraph is a model without its names: ops in order with their constants, parameters
// by the order of their first use. Two models with equal texts are the same function of
// parameters that correspond by position.
type canonicalGraph struct {
	text   string
	params []string // paths, by number
}

func canonical(m *ir.Model) canonicalGraph {
	var b strings.Builder
	var out canonicalGraph
	number := map[string]string{}
	for _, p := range m.Params {
		number[p.Path] = fmt.Sprintf("w%d", len(out.params))
		out.params = append(out.params, p.Path)
		fmt.Fprintf(&b, "weight")
		for _, d := range p.Shape {
			fmt.Fprintf(&b, " %d", d.N)
		}
		b.WriteByte('\n')
	}
	w := graphWriter{out: &b, names: map[*ir.Value]string{}, params: number}
	for _, u := range m.Units {
		w.unit(u)
	}
	out.text = b.String()
	return out
}

// firstDifference returns the first lines that differ.
func firstDifference(a, b string) (differ bool, mine, theirs string) {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(x), len(y)) {
		mine, theirs = "nothing", "nothing"
		if i < len(x) && x[i] != "" {
			mine = x[i]
		}
		if i < len(y) && y[i] != "" {
			theirs = y[i]
		}
		if mine != theirs {
			return true, mine, theirs
		}
	}
	return false, "", ""
}

// renamed gives a map the paths of another model with the same graph.
func renamed(list []plan.Foreign, from, to []string) []plan.Foreign {
	path := map[string]string{}
	for i := range from {
		path[from[i]] = to[i]
	}
	out := slices.Clone(list)
	for i := range out {
		params := make([]string, len(out[i].Params))
		for j, p := range out[i].Params {
			params[j] = path[p]
		}
		out[i].Params = params
	}
	return out
}

// mapDifference says where a model's own map differs from its family's.
func mapDifference(own, theirs []plan.Foreign) string {
	key := func(f *plan.Foreign) string { return f.Op + " " + strings.Join(f.Names, " ") }
	of := map[string]string{}
	for i := range theirs {
		for j, p := range theirs[i].Params {
			of[p] = fmt.Sprint(key(&theirs[i]), " ", j)
		}
	}
	for i := range own {
		for j, p := range own[i].Params {
			if mine := fmt.Sprint(key(&own[i]), " ", j); mine != of[p] {
				return fmt.Sprintf("its weights map has %s from `%s`, where the family has `%s`", p, strings.TrimSpace(mine), strings.TrimSpace(of[p]))
			}
		}
	}
	return ""
}

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
	router, expert                           *ir.Node
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
	case "linear":
		if kind == ir.LayerUnit {
			first(&r.project)
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
		attr("eps", r.norm, "eps"), attr("scaling", r.rope, "scaling"), attr("window", r.attention, "window"),
		{Name: "tied", Text: fmt.Sprint(r.tied)},
	}
}

func (r *graphReader) llama() []plan.Value {
	out := r.llamaLayer()
	if out == nil || r.router != nil {
		return nil
	}
	return append(out, attr("qkv_bias", r.project, "bias"), plan.Value{Name: "qk_norm", Text: fmt.Sprint(r.headNorm != nil)})
}

func (r *graphReader) mixture(family string) []plan.Value {
	out := r.llamaLayer()
	if out == nil || r.router == nil || r.expert == nil || (r.headNorm != nil) != (family == "qwen3_moe") {
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
	return append(out, plan.Value{Name: "head_norm", Text: fmt.Sprint(perHead)}, attr("renorm", r.router, "renorm"))
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

// dumpFamily prints what family found.
func dumpFamily(s *state) string {
	var b strings.Builder
	f := &s.family
	if f.Name == "" {
		fmt.Fprintf(&b, "no family: %s\n", f.Why)
	} else {
		fmt.Fprintf(&b, "family %s\n", f.Name)
	}
	for _, v := range f.Values {
		fmt.Fprintf(&b, "%s = %s\n", v.Name, v.Text)
	}
	for _, e := range s.foreign {
		fmt.Fprintf(&b, "%s <- %s\n", strings.Join(e.Params, " "), strings.TrimSpace(e.Op+" "+strings.Join(append(slices.Clone(e.Names), e.Also...), " ")))
	}
	return b.String()
}
