package front

import (
	"sort"
	"strconv"
	"strings"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag/suggest"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Weights expands every weights map of the target and proves that it is total (each
// parameter has an entry) and free of overlap (no parameter and no foreign tensor has two),
// so that it can be read in both directions.
//
// A left side is a weight or a prefix of weights. Under a prefix, what follows it in a
// path follows the foreign name: `ln = "ln_f"` maps ln.weight to "ln_f.weight". `[i]` ranges
// over all instances of a unit, a second one as in `layer[i].moe.expert[e]` over the experts, and
// `{i}` in a string is the index.
func Weights(s *State) {
	if s.target.model == nil {
		return
	}
	for _, w := range s.target.model.Weights {
		c := &mapCheck{
			s: s, name: w.Name, out: &ir.WeightMap{Name: w.Name.Name},
			taken: map[*ir.Param]source.Span{}, foreign: map[string]source.Span{},
		}
		c.index()
		c.stmts(w.Body)
		if !c.failed {
			c.total()
		}
		s.Model.Maps = append(s.Model.Maps, c.out)
	}
}

// mapCheck expands one map.
type mapCheck struct {
	s       *State
	name    ast.Ident
	out     *ir.WeightMap
	groups  []*paramGroup
	taken   map[*ir.Param]source.Span
	foreign map[string]source.Span
	failed  bool
}

// paramGroup is the parameters that differ in the index of their unit, and of their expert, only.
type paramGroup struct {
	parts   []string // "layer", "q", "weight"
	indexed []bool   // by part: it has an index
	params  map[mapKey]*ir.Param
	order   []mapKey
}

// mapKey is the index of a unit and that of an expert, -1 where there is none.
type mapKey [2]int

func (g *paramGroup) String() string {
	out := make([]string, len(g.parts))
	for i, p := range g.parts {
		if out[i] = p; g.indexed[i] && i == 0 {
			out[i] += "[i]"
		} else if g.indexed[i] {
			out[i] += "[e]"
		}
	}
	return strings.Join(out, ".")
}

// after is what follows the first n parts of a parameter's path, with its indices as parts.
func (g *paramGroup) after(n int, k mapKey) []string {
	var out []string
	for i := n; i < len(g.parts); i++ {
		out = append(out, g.parts[i])
		if g.indexed[i] {
			out = append(out, strconv.Itoa(k[1]))
		}
	}
	return out
}

// index groups the model's parameters by path.
func (c *mapCheck) index() {
	by := map[string]*paramGroup{}
	for _, p := range c.s.Model.Params {
		g := &paramGroup{params: map[mapKey]*ir.Param{}}
		k := mapKey{-1, -1}
		for i, part := range strings.Split(p.Path, ".") {
			name, idx, indexed := strings.Cut(part, "[")
			if indexed {
				k[min(i, 1)], _ = strconv.Atoi(strings.TrimSuffix(idx, "]"))
			}
			g.parts, g.indexed = append(g.parts, name), append(g.indexed, indexed)
		}
		if have := by[g.String()]; have != nil {
			g = have
		} else {
			by[g.String()] = g
			c.groups = append(c.groups, g)
		}
		g.params[k] = p
		g.order = append(g.order, k)
	}
}

func (c *mapCheck) stmts(list []ast.WeightStmt) {
	for _, st := range list {
		switch st := st.(type) {
		case *ast.WeightEntry:
			c.entry(st)
		case *ast.WeightIf:
			cond, ok := c.s.evalCond(st.Cond, c.s.consts)
			switch {
			case !ok:
				c.failed = true
			case cond:
				c.stmts(st.Then)
			default:
				c.stmts(st.Else)
			}
		}
	}
}

// entry expands one line of the map.
func (c *mapCheck) entry(e *ast.WeightEntry) {
	var targets [][]*paramGroup // for each left side, the groups under it
	var depth []int
	var index mapIndex
	for i := range e.Targets {
		t := &e.Targets[i]
		groups, n, idx := c.find(t)
		if groups == nil {
			return
		}
		for j := range idx {
			a, b := index[j], idx[j]
			if i > 0 && (a == nil) != (b == nil) || a != nil && b != nil && a.Name != b.Name {
				c.fail(codeMapPath, t.Span, "the targets of one entry share one index", "write `%s` for all of them", indexText(a, b))
				return
			}
		}
		index = idx
		targets, depth = append(targets, groups), append(depth, n)
	}
	if len(targets) == 0 {
		return
	}
	v, ok := c.value(e)
	if !ok {
		return
	}
	if v.split != (len(targets) > 1) {
		if v.split {
			c.fail(codeMapValue, e.Value.Pos(), "`split` needs several targets", "write `a, b = split(...)`")
		} else {
			c.fail(codeMapValue, e.Value.Pos(), "several targets take their parts from `split`", "write `... = split(%s)`", e.Value.Pos().Text())
		}
		return
	}
	for k, g := range targets[0] {
		row := []*paramGroup{g}
		suffix := g.parts[depth[0]:]
		for j := 1; j < len(targets); j++ {
			if k >= len(targets[j]) || strings.Join(targets[j][k].parts[depth[j]:], ".") != strings.Join(suffix, ".") || len(targets[j]) != len(targets[0]) {
				c.fail(codeMapValue, e.Targets[j].Span, "the targets of a `split` have the same weights under them",
					"`%s` has `%s`", e.Targets[0].Span.Text(), strings.Join(suffix, "."))
				return
			}
			row = append(row, targets[j][k])
		}
		if !c.expand(e, row, depth[0], v, index) {
			return
		}
	}
}

func indexText(a, b *ast.Ident) string {
	if a != nil {
		return "[" + a.Name + "]"
	}
	return "[" + b.Name + "]"
}

func (c *mapCheck) fail(code string, at source.Span, message, hint string, args ...any) {
	c.failed = true
	d := c.s.errorf(code, at, "%s", message)
	if hint != "" {
		d.Hint(hint, args...)
	}
}

// expand adds the entries of one group of targets, one for each index.
func (c *mapCheck) expand(e *ast.WeightEntry, row []*paramGroup, depth int, v *mapValue, index mapIndex) bool {
	for _, k := range row[0].order {
		entry := ir.WeightMapEntry{Op: v.op(row[0].params[k].Shape), Span: e.Span}
		for j, g := range row {
			p := g.params[k]
			if p == nil {
				c.fail(codeMapValue, e.Targets[j].Span, "the targets of an entry have one range of indices", "`%s` has no index %d", g.String(), max(k[0], k[1]))
				return false
			}
			if at, twice := c.taken[p]; twice {
				c.failed = true
				c.s.errorf(codeMapOverlap, e.Targets[j].Span, "`%s` has two entries", p.Path).Also(at, "the first one")
				return false
			}
			c.taken[p] = e.Targets[j].Span
			entry.Targets = append(entry.Targets, p)
			if j > 0 && !tail(p.Shape).Equal(tail(entry.Targets[0].Shape)) {
				c.fail(codeMapValue, e.Targets[j].Span, "`split` cuts along axis 0, and these differ in other axes: "+
					entry.Targets[0].Shape.String()+" and "+p.Shape.String(), "")
				return false
			}
		}
		for _, str := range v.strings {
			name, ok := c.foreignName(str, k, index, row[0].after(depth, k))
			if !ok {
				return false
			}
			if at, twice := c.foreign[name]; twice {
				c.failed = true
				c.s.errorf(codeMapOverlap, str.Span, "the tensor `%s` is mapped twice", name).Also(at, "the first time").
					Hint("an export writes each tensor once, so each belongs to one weight")
				return false
			}
			c.foreign[name] = str.Span
			if v.same && len(entry.Names) > 0 {
				entry.Also = append(entry.Also, name)
				continue
			}
			entry.Names = append(entry.Names, name)
		}
		c.out.Entries = append(c.out.Entries, entry)
	}
	return true
}

func tail(s tensor.Shape) tensor.Shape {
	if len(s) == 0 {
		return s
	}
	return s[1:]
}

// total reports parameters without an entry.
func (c *mapCheck) total() {
	var missing []string
	for _, g := range c.groups {
		for _, k := range g.order {
			if _, ok := c.taken[g.params[k]]; !ok {
				missing = append(missing, g.String())
				break
			}
		}
	}
	if len(missing) == 0 {
		return
	}
	sort.Strings(missing)
	c.failed = true
	c.s.errorf(codeMapMissing, c.name.Span, "weights map `%s` has no entry for %s", c.name.Name, suggest.List(missing)).
		Hint("write `%s = \"...\"`", missing[0])
}
