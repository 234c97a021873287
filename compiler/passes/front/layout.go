package front

import (
	"slices"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/source"
)

// closeUnits gives the units their final form: the ops before the first block are `embed`,
// those after the last one `head`, those between are glue. Forward's value becomes the
// head's output.
func (s *State) closeUnits() {
	if s.logit.bad || len(s.units) == 0 {
		return
	}
	if len(s.units) == 1 && s.units[0].segment {
		s.splitOnly()
	}
	glue := 0
	for i, b := range s.units {
		u := b.unit
		if b.segment {
			switch i {
			case 0:
				u.Kind, u.Name = ir.EmbedUnit, "embed"
			case len(s.units) - 1:
				u.Kind, u.Name = ir.HeadUnit, "head"
			default:
				u.Kind, u.Name, u.Index = ir.GlueUnit, "glue", glue
				glue++
			}
			u.Graph.Name = u.Name
			if n := len(u.Graph.Nodes); n > 0 {
				u.Span = u.Graph.Nodes[0].Span
				u.Graph.Span = u.Span
			}
		}
		s.Model.Units = append(s.Model.Units, u)
	}
	if v := s.logit; v.unit != nil {
		v.m = v.unit.export(s, v.g)
		// The logits leave the head into the loss, not to another unit.
		if i := slices.Index(s.Model.Values, v.m); i >= 0 && v.unit == s.units[len(s.units)-1] {
			s.Model.Values = slices.Delete(s.Model.Values, i, i+1)
		}
	}
}

// splitOnly cuts a model without blocks after the last op that reads the ids: what is
// before is the embedding, what is after is the head.
func (s *State) splitOnly() {
	b := s.units[0]
	g := b.unit.Graph
	cut := 0
	for i, n := range g.Nodes {
		for _, in := range n.Inputs {
			if in.Node == nil {
				cut = i + 1
			}
		}
	}
	if cut == 0 || cut == len(g.Nodes) {
		return
	}
	head := &build{
		unit:    &ir.Unit{Index: -1, Graph: &ir.Graph{}},
		inputs:  map[*ir.Value]*ir.Value{},
		segment: true,
	}
	mine := map[*ir.Value]bool{}
	for _, n := range g.Nodes[cut:] {
		mine[n.Out] = true
		s.nodes[n].unit = head
		for i, in := range n.Inputs {
			if !mine[in] {
				n.Inputs[i] = head.use(s, &val{unit: b, g: in, span: in.Span})
			}
		}
	}
	head.unit.Graph.Nodes = g.Nodes[cut:]
	g.Nodes = g.Nodes[:cut:cut]
	s.units = append(s.units, head)
	if mine[s.logit.g] {
		s.logit.unit = head
	}
}

// firstReader is where a unit first reads a model value.
func firstReader(b *build, m *ir.Value) source.Span {
	in := b.inputs[m]
	for _, n := range b.unit.Graph.Nodes {
		for _, v := range n.Inputs {
			if v == in {
				return n.Span
			}
		}
	}
	return b.unit.Span
}
