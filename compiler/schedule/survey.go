package schedule

import (
	"fmt"
	"slices"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/tensor"
)

// survey fills the plan's slabs, units and templates and finds what the order depends on:
// who contributes to each slab's gradient, which slabs rotate through slots, where the loss is.
func (b *builder) survey() error {
	b.span(b.prog.Model.Span)
	for _, t := range b.prog.Templates {
		b.p.Templates = append(b.p.Templates, t.Name)
	}
	for _, s := range b.prog.Slabs {
		ps := plan.Slab{Name: s.Name, Elems: s.Elems, Decay: s.Decay, Frozen: s.Frozen}
		for i, q := range s.Params {
			shape := make([]int64, len(q.Shape))
			for k, d := range q.Shape {
				shape[k] = d.N
			}
			ps.Params = append(ps.Params, plan.Param{
				Name: q.Path, Off: s.Offs[i], Shape: shape, Decay: s.Offs[i] < s.Decay, Init: q.Init,
			})
		}
		b.p.Slabs = append(b.p.Slabs, ps)
	}
	b.head = -1
	uses := make([][]int, len(b.prog.Slabs))
	layer := 0
	for u, ub := range b.prog.Units {
		t := b.template(u)
		pu := plan.Unit{
			Name: ub.Unit.Path(), Template: ub.Template, Slabs: ub.Slabs, Layer: -1,
			In: ub.In, Out: ub.Out, Span: b.span(ub.Unit.Span),
		}
		switch {
		case ub.Unit.Part != "":
			pu.Layer = layer - 1 // of the block that was cut
		case ub.Unit.Kind == ir.LayerUnit:
			pu.Layer = layer
			layer++
		}
		b.p.Units = append(b.p.Units, pu)
		if err := b.checkUnit(u, pu.Name); err != nil {
			return err
		}
		for _, s := range ub.Slabs {
			uses[s] = append(uses[s], u)
		}
		if t.Funcs[plan.Loss] != nil {
			if b.head >= 0 || u != len(b.prog.Units)-1 {
				return fmt.Errorf("unit %s: the loss belongs to the last unit and to no other", pu.Name)
			}
			b.head = u
		}
	}
	if b.head < 0 {
		return fmt.Errorf("the model has no unit with a loss")
	}
	b.contributors = make([][]int, len(uses))
	b.ring, b.first = make([]int, len(uses)), make([]int, len(uses))
	rotating := 0
	for s, units := range uses {
		if len(units) == 0 {
			return fmt.Errorf("slab %s: no unit uses it", b.p.Slabs[s].Name)
		}
		b.ring[s], b.first[s] = -1, units[0]
		if b.p.Slabs[s].Frozen {
			continue
		}
		for _, u := range slices.Backward(units) {
			if t := b.template(u); t.Funcs[plan.Loss] != nil || t.Funcs[plan.Backward] != nil {
				b.contributors[s] = append(b.contributors[s], u)
			}
		}
		if len(b.contributors[s]) == 0 {
			return fmt.Errorf("slab %s: no unit makes its gradient", b.p.Slabs[s].Name)
		}
	}
	for _, ub := range b.prog.Units {
		for _, s := range ub.Slabs {
			if ub.Unit.Kind == ir.LayerUnit && len(uses[s]) == 1 {
				b.ring[s] = rotating
				rotating++
			}
		}
	}
	return b.inputs()
}

// loraOf puts the model's adapters in the plan's terms.
func loraOf(m *ir.Model) plan.LoRA {
	if m.LoRA == nil {
		return plan.LoRA{}
	}
	out := plan.LoRA{Rank: m.LoRA.Rank, Alpha: m.LoRA.Alpha}
	for _, t := range m.LoRA.Targets {
		if t.A != nil {
			out.Adapters = append(out.Adapters, plan.Adapter{Weight: t.Weight.Path, A: t.A.Path, B: t.B.Path})
		}
	}
	return out
}

// checkUnit refuses what a binding cannot carry.
func (b *builder) checkUnit(u int, name string) error {
	ub, t := b.prog.Units[u], b.template(u)
	if len(ub.Slabs) > plan.MaxSlabs {
		return fmt.Errorf("unit %s binds %d slabs, at most %d are possible", name, len(ub.Slabs), plan.MaxSlabs)
	}
	if n := max(len(ub.In), len(ub.Out), len(t.Out)); n > plan.MaxIO {
		return fmt.Errorf("unit %s passes %d values, at most %d are possible", name, n, plan.MaxIO)
	}
	if len(t.In) != len(ub.In) || len(t.DIn) != len(ub.In) || len(t.DOut) < len(ub.Out) || len(t.Out) < len(ub.Out) {
		return fmt.Errorf("unit %s: its template takes %d and gives %d values, the unit %d and %d", name, len(t.In), len(t.Out), len(ub.In), len(ub.Out))
	}
	for i, v := range ub.In {
		if slices.Contains(ub.In[:i], v) {
			return fmt.Errorf("unit %s takes the value %q twice", name, b.prog.Model.Values[v].Name)
		}
	}
	return nil
}

// inputs finds the model's values that no unit makes: tokens and position.
func (b *builder) inputs() error {
	made := make([]bool, len(b.prog.Model.Values))
	for u, ub := range b.prog.Units {
		for _, v := range ub.In {
			if made[v] {
				continue
			}
			switch x := b.prog.Model.Values[v]; {
			case x.Type.DType == tensor.I32 && x.Name == "tokens":
				b.tokens = v
			case x.Type.DType == tensor.I32 && x.Name == "position":
				b.position = v
			default:
				return fmt.Errorf("unit %s reads the value %q before any unit makes it", b.p.Units[u].Name, x.Name)
			}
		}
		for _, v := range ub.Out {
			made[v] = true
		}
	}
	return nil
}
