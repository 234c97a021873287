package compiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/models"
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
	if s.check == nil {
		return // a trial: only its size is asked for
	}
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
	w := graphWriter{out: &b, names: map[*ir.Value]string{}, params: number, forward: true}
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
