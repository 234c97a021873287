package lower

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Templates makes one template for all units that are equal in everything a generated
// function can see: graph, shapes, constants, layout of weights, gradients that pass, and
// the recompute policy. Names of instances, inits and positions in the text do not count.
func Templates(m *ir.Model, o Options, diags *diag.List) *Lowering {
	p := &ir.Program{Model: m, Rows: o.rows(m), Prefill: o.prefill(m), DType: o.DType, Documents: m.Train != nil && m.Train.Documents}
	l := &Lowering{Program: p, opts: o, diags: diags, table: map[string]int{}}
	slabs := bindSlabs(m, p, diags)
	f := gradientFlow(m)
	index := map[*ir.Value]int{}
	for i, v := range m.Values {
		index[v] = i
	}
	byKey := map[string]int{}
	names := map[string]bool{}
	for _, u := range m.Units {
		b := slabs[u]
		if n := max(len(u.Inputs), len(u.Outputs)); n > plan.MaxIO {
			diags.Errorf("MT0413", u.Span, "%d values pass into or out of `%s`, at most %d are possible", n, u.Path(), plan.MaxIO)
			continue
		}
		key := templateKey(u, b, f)
		k, ok := byKey[key]
		if !ok {
			k = len(p.Templates)
			byKey[key] = k
			t := newTemplate(u, b, f, unusedName(u.Kin(), names))
			p.Templates = append(p.Templates, t)
			l.tmpls = append(l.tmpls, &tmpl{Template: t, kind: u.Kind, model: m})
			l.addTables(t.Graph)
		}
		u.Graph = p.Templates[k].Graph
		p.Units = append(p.Units, &ir.UnitBinding{
			Unit: u, Template: k, Slabs: b.slabs, In: indices(index, u.Inputs), Out: indices(index, u.Outputs),
		})
	}
	return l
}

func newTemplate(u *ir.Unit, b *binding, f *flow, name string) *ir.Template {
	t := &ir.Template{Name: name, Span: u.Graph.Span, Graph: u.Graph, Slabs: b.layouts, DIn: f.din[u], DOut: f.dout[u]}
	if !t.Span.Valid() {
		t.Span = u.Span
	}
	for _, v := range u.Graph.Inputs {
		t.In = append(t.In, v.Type)
	}
	for _, v := range u.Graph.Outputs {
		out := v.Type
		if u.Kind == ir.HeadUnit {
			out = sized(out, 1, 1)
		}
		t.Out = append(t.Out, out)
	}
	return t
}

// indices drops values that do not pass between units.
func indices(index map[*ir.Value]int, values []*ir.Value) []int {
	var out []int
	for _, v := range values {
		if i, ok := index[v]; ok {
			out = append(out, i)
		}
	}
	return out
}

// unusedName returns name, name2, name3 ...
func unusedName(name string, taken map[string]bool) string {
	s := name
	for i := 2; taken[s]; i++ {
		s = name + strconv.Itoa(i)
	}
	taken[s] = true
	return s
}

// templateKey writes down everything that shapes a unit's functions.
func templateKey(u *ir.Unit, b *binding, f *flow) string {
	var s strings.Builder
	g := u.Graph
	fmt.Fprintf(&s, "head=%v keep=%v din=%v dout=%v\n", u.Kind == ir.HeadUnit, g.NoRecompute, f.din[u], f.dout[u])
	number := map[*ir.Value]int{}
	for _, v := range g.Inputs {
		number[v] = len(number)
		fmt.Fprintf(&s, "in %s\n", typeKey(v.Type))
	}
	slot := map[*ir.Weight]int{}
	for i, w := range g.Weights {
		slot[w] = i
		fmt.Fprintf(&s, "weight %v frozen=%t\n", dims(w.Shape), w.Frozen)
	}
	for _, l := range b.layouts {
		fmt.Fprintf(&s, "slab %v %v %d\n", l.Weights, l.Offs, l.Elems)
	}
	for _, n := range g.Nodes {
		c := n.Call
		s.WriteString(c.Def.Name)
		for i, v := range n.Inputs {
			fmt.Fprintf(&s, " %s=%d", c.Inputs[i], number[v])
		}
		for i, w := range n.Weights {
			fmt.Fprintf(&s, " %s=w%d", c.Weights[i].Name, slot[w])
		}
		number[n.Out] = len(number)
		fmt.Fprintf(&s, " -> %s", typeKey(c.Out))
		for _, list := range [][]op.Operand{c.Saved, c.State} {
			for _, o := range list {
				fmt.Fprintf(&s, " %s %s", o.Name, typeKey(o.Type))
			}
		}
		for _, t := range c.Tables {
			s.WriteString(" " + tableKey(c, t))
		}
		s.WriteString(constsKey(c.Consts) + "\n")
	}
	for _, v := range g.Outputs {
		fmt.Fprintf(&s, "out %d\n", number[v])
	}
	return s.String()
}

func typeKey(t tensor.Type) string { return fmt.Sprint(t.DType, dims(t.Shape)) }

// dims are the sizes without names, which do not matter to a launch.
func dims(s tensor.Shape) []int64 {
	out := make([]int64, len(s))
	for i, d := range s {
		out[i] = d.N
	}
	return out
}

func constsKey(list []op.Const) string {
	var s strings.Builder
	for _, c := range list {
		fmt.Fprintf(&s, " %s=%d:%d:%x:%t", c.Field, c.Kind, c.Int, c.Float, c.Bool)
	}
	return s.String()
}

func tableKey(c *op.Call, t op.Table) string {
	return c.Def.Name + "." + t.Func + typeKey(t.Type) + constsKey(t.Consts)
}

// addTables gives each different constant table of a graph a place in the program.
func (l *Lowering) addTables(g *ir.Graph) {
	for _, n := range g.Nodes {
		for _, t := range n.Call.Tables {
			key := tableKey(n.Call, t)
			if _, ok := l.table[key]; ok {
				continue
			}
			l.table[key] = len(l.Program.Tables)
			name := n.Call.Def.Name + "." + t.Operand
			for i := 2; l.tableNamed(name); i++ {
				name = n.Call.Def.Name + "." + t.Operand + strconv.Itoa(i)
			}
			l.Program.Tables = append(l.Program.Tables, &ir.TableBuf{Name: name, Room: n.Call.Def.Package(), Table: t})
		}
	}
}

func (l *Lowering) tableNamed(name string) bool {
	for _, t := range l.Program.Tables {
		if t.Name == name {
			return true
		}
	}
	return false
}
