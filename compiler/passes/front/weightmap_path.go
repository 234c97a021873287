package front

import (
	"strings"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag/suggest"
)

// find returns the groups under a path, in the model's order, and how many parts the path has.
func (c *mapCheck) find(t *ast.WeightPath) (out []*paramGroup, n int, index *ast.Ident) {
	n = len(t.Parts)
	if n == 0 {
		c.failed = true
		return nil, 0, nil
	}
	index = t.Parts[0].Index
	for i := 1; i < n; i++ {
		if at := t.Parts[i].Index; at != nil {
			c.fail(codeMapPath, at.Span, "only a unit has an index, and `"+t.Parts[i].Name.Name+"` is not one", "write `%s`", t.Parts[i].Name.Name)
			return nil, 0, nil
		}
	}
	best := 0
	for _, g := range c.groups {
		m := 0
		for m < n && m < len(g.parts) && g.parts[m] == t.Parts[m].Name.Name {
			m++
		}
		best = max(best, m)
		if m == n {
			if g.indexed != (index != nil) {
				if g.indexed {
					c.fail(codeMapPath, t.Parts[0].Name.Span, "`"+g.parts[0]+"` has an index", "write `%s[i]`", g.parts[0])
				} else {
					c.fail(codeMapPath, index.Span, "`"+g.parts[0]+"` has no index", "write `%s`", g.parts[0])
				}
				return nil, 0, nil
			}
			out = append(out, g)
		}
	}
	if out != nil {
		return out, n, index
	}
	c.failed = true
	c.noPath(t, best)
	return nil, 0, nil
}

// noPath reports the first part of a path that leads nowhere.
func (c *mapCheck) noPath(t *ast.WeightPath, matched int) {
	part := t.Parts[matched].Name
	// A call that is tied owns no weight: that is said plainly, because the label exists.
	if ls := c.s.labels[c.s.target.model]; ls != nil && ls.all[part.Name] {
		d := c.s.errorf(codeMapPath, part.Span, "`%s` owns no weight here", t.Span.Text())
		d.Hint("remove the entry, or put it into an `if`: a tied weight has the entry of its owner")
		return
	}
	seen := map[string]bool{}
	var cands []string
	for _, g := range c.groups {
		if matched < len(g.parts) && samePrefix(g.parts, t.Parts[:matched]) && !seen[g.parts[matched]] {
			seen[g.parts[matched]] = true
			cands = append(cands, g.parts[matched])
		}
	}
	where := ""
	if matched > 0 {
		where = " under `" + strings.TrimSuffix(pathText(t.Parts[:matched]), ".") + "`"
	}
	c.s.errorf(codeMapPath, part.Span, "there is no weight `%s`%s", part.Name, where).Hint("%s", suggest.HintOr(part.Name, few(cands)))
}

func samePrefix(parts []string, path []ast.WeightPart) bool {
	for i, p := range path {
		if parts[i] != p.Name.Name {
			return false
		}
	}
	return true
}

func pathText(parts []ast.WeightPart) string {
	out := ""
	for i, p := range parts {
		if i > 0 {
			out += "."
		}
		out += p.Name.Name
		if p.Index != nil {
			out += "[" + p.Index.Name + "]"
		}
	}
	return out
}
