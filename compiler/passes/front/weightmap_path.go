package front

import (
	"strings"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag/suggest"
)

// mapIndex are the names of the index of a unit and that of an expert, nil where there is none.
type mapIndex [2]*ast.Ident

// find returns the groups under a path, in the model's order, and how many parts the path has.
func (c *mapCheck) find(t *ast.WeightPath) (out []*paramGroup, n int, index mapIndex) {
	n = len(t.Parts)
	if n == 0 {
		c.failed = true
		return nil, 0, index
	}
	for i, p := range t.Parts {
		if p.Index == nil {
			continue
		}
		if at := min(i, 1); index[at] == nil {
			index[at] = p.Index
		} else {
			c.fail(codeMapPath, p.Index.Span, "a weight has an index of its unit and one of its expert", "write `%s`", p.Name.Name)
			return nil, 0, index
		}
	}
	if a, b := index[0], index[1]; a != nil && b != nil && a.Name == b.Name {
		c.fail(codeMapPath, b.Span, "two indices of one path have one name", "write `[e]` for that of the experts")
		return nil, 0, index
	}
	best := 0
	for _, g := range c.groups {
		m := 0
		for m < n && m < len(g.parts) && g.parts[m] == t.Parts[m].Name.Name {
			m++
		}
		best = max(best, m)
		if m < n {
			continue
		}
		for i, p := range t.Parts {
			switch at := p.Index; {
			case g.indexed[i] && at == nil:
				c.fail(codeMapPath, p.Name.Span, "`"+p.Name.Name+"` has an index", "write `%s[%s]`", p.Name.Name, "ie"[min(i, 1):min(i, 1)+1])
				return nil, 0, index
			case !g.indexed[i] && at != nil && i == 0:
				c.fail(codeMapPath, at.Span, "`"+p.Name.Name+"` has no index", "write `%s`", p.Name.Name)
				return nil, 0, index
			case !g.indexed[i] && at != nil:
				c.fail(codeMapPath, at.Span, "only a unit and the experts of a mixture have an index, and `"+p.Name.Name+"` is neither", "write `%s`", p.Name.Name)
				return nil, 0, index
			}
		}
		out = append(out, g)
	}
	if out != nil {
		return out, n, index
	}
	c.failed = true
	c.noPath(t, best)
	return nil, 0, index
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

// first is the name of an index.
func (x mapIndex) first() string {
	for _, id := range x {
		if id != nil {
			return id.Name
		}
	}
	return ""
}
