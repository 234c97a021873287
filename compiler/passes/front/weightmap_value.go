package front

import (
	"slices"
	"strconv"
	"strings"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag/suggest"
	"github.com/megatrain/mtc/runtime/tensor"
)

// mapValue is the right side of an entry: foreign names, and what is done with their tensors.
type mapValue struct {
	strings     []*ast.String
	transpose   bool // each foreign tensor, before anything else
	split, join bool
	same        bool // the strings are names of one tensor: the first is there, the others may be
}

// op is the operation for targets of a shape: transposing a vector is nothing.
func (v *mapValue) op(shape tensor.Shape) string {
	t := v.transpose && len(shape) > 1
	switch {
	case v.split && t:
		return "split(transpose"
	case v.split:
		return "split"
	case v.join && t:
		return "join(transpose"
	case v.join:
		return "join"
	case t:
		return "transpose"
	}
	return ""
}

// mapFuncs are the functions of a weights map.
var mapFuncs = []string{"transpose", "split", "join", "same"}

// value reads the right side of an entry.
func (c *mapCheck) value(e *ast.WeightEntry) (*mapValue, bool) {
	v := &mapValue{}
	x := unparen(e.Value)
	if call, ok := x.(*ast.Call); ok && indexOf([]string{"split", "join", "same"}, call.Callee.Name) >= 0 {
		v.split, v.join, v.same = call.Callee.Name == "split", call.Callee.Name == "join", call.Callee.Name == "same"
		if v.split && len(call.Args) != 1 || !v.split && len(call.Args) < 2 {
			want := map[string]string{"split": "`split` takes one tensor", "join": "`join` takes several tensors", "same": "`same` takes several names of one tensor"}[call.Callee.Name]
			c.fail(codeMapValue, call.Span, want, "")
			return nil, false
		}
		for i, a := range call.Args {
			t, ok := c.leaf(a.Value, v)
			if !ok {
				return nil, false
			}
			if i > 0 && t != v.transpose {
				c.fail(codeMapValue, a.Span, "`"+call.Callee.Name+"` transposes all of its tensors or none", "")
				return nil, false
			}
			v.transpose = t
		}
		return v, true
	}
	t, ok := c.leaf(x, v)
	v.transpose = t
	return v, ok
}

// leaf reads "name" or transpose("name").
func (c *mapCheck) leaf(e ast.Expr, v *mapValue) (transpose, ok bool) {
	switch e := unparen(e).(type) {
	case *ast.String:
		v.strings = append(v.strings, e)
		return false, true
	case *ast.Call:
		if e.Callee.Name == "transpose" && len(e.Args) == 1 {
			if str, ok := unparen(e.Args[0].Value).(*ast.String); ok {
				v.strings = append(v.strings, str)
				return true, true
			}
		}
		if indexOf(mapFuncs, e.Callee.Name) < 0 {
			return false, false // reported by names
		}
	}
	c.fail(codeMapValue, e.Pos(), "a name in quotes is wanted here, or `transpose` of one",
		"`split`, `join` and `same` stand outside: `split(transpose(\"name\"))`")
	return false, false
}

// foreignName fills the placeholders of a name and appends the suffix under a prefix.
func (c *mapCheck) foreignName(str *ast.String, k mapKey, index mapIndex, suffix []string) (string, bool) {
	var out strings.Builder
	rest := str.Value
	for {
		text, after, found := strings.Cut(rest, "{")
		out.WriteString(text)
		if !found {
			break
		}
		inner, tail, closed := strings.Cut(after, "}")
		of, add, ok := placeholder(inner, index)
		if !closed || !ok {
			return "", false // reported by names
		}
		if k[of]+add < 0 {
			c.fail(codeMapValue, str.Span, "`{"+inner+"}` is negative for index "+strconv.Itoa(k[of]), "")
			return "", false
		}
		out.WriteString(strconv.Itoa(k[of] + add))
		rest = tail
	}
	if len(suffix) > 0 {
		return out.String() + "." + strings.Join(suffix, "."), true
	}
	return out.String(), true
}

// placeholder reads `i`, `i + 1` or `i - 1` and returns which index it is and what is added to it.
func placeholder(text string, index mapIndex) (of, add int, ok bool) {
	for of, id := range index {
		if id == nil {
			continue
		}
		rest, found := strings.CutPrefix(strings.TrimSpace(text), id.Name)
		rest = strings.TrimSpace(rest)
		if !found || rest != "" && rest[0] != '+' && rest[0] != '-' {
			continue
		}
		if rest == "" {
			return of, 0, true
		}
		n, err := strconv.Atoi(strings.TrimSpace(rest[1:]))
		if err != nil || n < 0 || n > 1<<20 {
			return 0, 0, false
		}
		if rest[0] == '-' {
			n = -n
		}
		return of, n, true
	}
	return 0, 0, false
}

// mapNames checks the names of all weights maps of a model, branches not taken too: every
// part of a path is a label, variable or block of the model or a weight of an op; every
// placeholder is the index.
func (s *State) mapNames(m *ast.Model) {
	for _, w := range m.Weights {
		s.mapBody(m, w.Body)
	}
}

func (s *State) mapBody(m *ast.Model, list []ast.WeightStmt) {
	for _, st := range list {
		switch st := st.(type) {
		case *ast.WeightIf:
			s.bodyNames(m).expr(st.Cond, intParam)
			s.mapBody(m, st.Then)
			s.mapBody(m, st.Else)
		case *ast.WeightEntry:
			var index mapIndex
			for i := range st.Targets {
				for k, part := range st.Targets[i].Parts {
					if part.Index != nil {
						index[min(k, 1)] = part.Index
					}
					s.mapPart(m, part.Name)
				}
			}
			s.mapExpr(st.Value, index)
		}
	}
}

// weightNames are the last parts of paths, and those of a mixture of experts.
var weightNames = []string{"weight", "bias", "expert", "shared", "router"}

func (s *State) mapPart(m *ast.Model, id ast.Ident) {
	ls := s.labels[m]
	if ls.all[id.Name] || indexOf(weightNames, id.Name) >= 0 {
		return
	}
	if s.full() {
		return
	}
	cands := slices.Clone(weightNames)
	for l := range ls.all {
		cands = append(cands, l)
	}
	s.errorf(codeUnknown, id.Span, "the model has no weight or block `%s`", id.Name).Hint("%s", suggest.HintOr(id.Name, few(slices.Sorted(slices.Values(cands)))))
}

func (s *State) mapExpr(e ast.Expr, index mapIndex) {
	switch e := unparen(e).(type) {
	case *ast.String:
		s.mapString(e, index)
	case *ast.Call:
		if indexOf(mapFuncs, e.Callee.Name) < 0 {
			s.errorf(codeUnknown, e.Callee.Span, "a weights map has no function `%s`", e.Callee.Name).
				Hint("%s", suggest.HintOr(e.Callee.Name, mapFuncs))
			return
		}
		for _, a := range e.Args {
			if a.Name != nil {
				s.errorf(codeArgs, a.Name.Span, "`%s` takes no named arguments", e.Callee.Name)
				continue
			}
			s.mapExpr(a.Value, index)
		}
	default:
		s.errorf(codeMapValue, e.Pos(), "the right side of an entry is a name in quotes").
			Hint("write `\"%s\"`", strings.Trim(e.Pos().Text(), `"`))
	}
}

func (s *State) mapString(e *ast.String, index mapIndex) {
	if e.Value == "" {
		s.errorf(codeMapValue, e.Span, "a tensor needs a name")
		return
	}
	rest := e.Value
	var used [2]bool
	for {
		_, after, found := strings.Cut(rest, "{")
		if !found {
			break
		}
		inner, tail, closed := strings.Cut(after, "}")
		of, _, ok := placeholder(inner, index)
		switch {
		case !closed:
			s.errorf(codeMapValue, e.Span, "`{` has no `}` in this name")
			return
		case !ok && index == (mapIndex{}):
			s.errorf(codeMapValue, e.Span, "`{%s}` has no index to stand for", inner).Hint("give the left side one: `layer[%s]`", strings.TrimSpace(inner))
			return
		case !ok:
			s.errorf(codeMapValue, e.Span, "`{%s}` is not the index of this entry", inner).
				Hint("did you mean `{%s}`? `{%s + 1}` works too", index.first(), index.first())
			return
		}
		used[of] = true
		rest = tail
	}
	for i, id := range index {
		if id != nil && !used[i] {
			s.errorf(codeMapValue, e.Span, "this name is the same for every `%s`", id.Name).Hint("write `{%s}` where the index stands", id.Name)
		}
	}
}
