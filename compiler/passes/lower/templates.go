package lower

import (
	"math"
	"strconv"

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
	g := u.Graph
	s := make(keyText, 0, 4096)
	s = s.flag(u.Kind == ir.HeadUnit).flag(g.NoRecompute)
	for _, mode := range f.din[u] {
		s = s.int(int64(mode))
	}
	s = s.word("dout")
	for _, yes := range f.dout[u] {
		s = s.flag(yes)
	}
	number := make(map[*ir.Value]int, len(g.Inputs)+len(g.Nodes))
	for _, v := range g.Inputs {
		number[v] = len(number)
		s = s.word("in").typ(v.Type)
	}
	slot := make(map[*ir.Weight]int, len(g.Weights))
	for i, w := range g.Weights {
		slot[w] = i
		s = s.word("weight").dims(w.Shape).flag(w.Frozen)
	}
	for _, l := range b.layouts {
		s = s.word("slab").int(l.Elems)
		for i, w := range l.Weights {
			s = s.int(int64(w)).int(l.Offs[i])
		}
	}
	for _, n := range g.Nodes {
		c := n.Call
		s = s.word("node").word(c.Def.Name)
		for i, v := range n.Inputs {
			s = s.word(c.Inputs[i]).int(int64(number[v]))
		}
		s = s.word("of")
		for i, w := range n.Weights {
			s = s.word(c.Weights[i].Name).int(int64(slot[w]))
		}
		number[n.Out] = len(number)
		s = s.word("to").typ(c.Out)
		for _, list := range [][]op.Operand{c.Saved, c.State} {
			for _, o := range list {
				s = s.word(o.Name).typ(o.Type)
			}
		}
		for _, t := range c.Tables {
			s = s.table(c, t)
		}
		s = s.consts(c.Consts)
	}
	for _, v := range g.Outputs {
		s = s.word("out").int(int64(number[v]))
	}
	return string(s)
}

// keyText is a text that says the same of two things only where they are the same.
type keyText []byte

// word appends one, which ends where it ends.
func (k keyText) word(s string) keyText { return append(append(k, s...), 0) }

func (k keyText) int(n int64) keyText { return append(strconv.AppendInt(k, n, 10), ' ') }

func (k keyText) flag(yes bool) keyText {
	if yes {
		return append(k, '+')
	}
	return append(k, '-')
}

// dims appends the sizes without names, which do not matter to a launch.
func (k keyText) dims(s tensor.Shape) keyText {
	for _, d := range s {
		k = k.int(d.N)
	}
	return append(k, ';')
}

func (k keyText) typ(t tensor.Type) keyText { return k.int(int64(t.DType)).dims(t.Shape) }

func (k keyText) consts(list []op.Const) keyText {
	for _, c := range list {
		k = k.word(c.Field).int(int64(c.Kind)).int(c.Int).int(int64(math.Float64bits(c.Float))).flag(c.Bool).word(c.Str)
	}
	return append(k, ';')
}

func (k keyText) table(c *op.Call, t op.Table) keyText {
	return k.word(c.Def.Name).word(t.Func).typ(t.Type).consts(t.Consts)
}

func tableKey(c *op.Call, t op.Table) string { return string(keyText(nil).table(c, t)) }

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
