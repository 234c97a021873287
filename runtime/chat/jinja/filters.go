package jinja

import (
	"math"
	"sort"
	"strconv"
	"strings"
)

func (r *renderer) filter(e filter) any {
	r.step(e.line)
	v := r.eval(e.of)
	c := &callArgs{name: e.name, named: NewDict(), line: e.line, r: r}
	for i, a := range e.args {
		if e.names[i] != "" {
			c.named.Set(e.names[i], r.eval(a))
		} else {
			c.args = append(c.args, r.eval(a))
		}
	}
	switch e.name {
	case "map":
		return r.mapped(v, c)
	case "select", "reject", "selectattr", "rejectattr":
		return r.selected(v, c)
	}
	f := filters[e.name]
	if f == nil {
		throw(e.line, "the filter `%s` is not known", e.name)
	}
	return f(v, c)
}

// mapped takes an attribute of every item, or applies a filter.
func (r *renderer) mapped(v any, c *callArgs) any {
	out := []any{}
	name, byAttr := c.named.Get("attribute")
	for _, x := range items(v, c.line) {
		if byAttr {
			y := r.path(x, str(name), c.line)
			if _, none := y.(undefined); none {
				y = c.arg(-1, "default", y)
			}
			out = append(out, y)
			continue
		}
		f := filters[c.str(0, "filter", "")]
		if f == nil {
			throw(c.line, "the filter `%s` is not known", c.str(0, "filter", ""))
		}
		out = append(out, f(x, &callArgs{name: c.name, args: c.args[1:], named: c.named, line: c.line, r: r}))
	}
	return out
}

// path is an attribute, or one of an attribute: "a.b".
func (r *renderer) path(v any, name string, line int) any {
	for _, part := range strings.Split(name, ".") {
		if i, err := strconv.ParseInt(part, 10, 64); err == nil {
			v = r.index(v, i, line)
			continue
		}
		v = r.index(v, part, line)
	}
	return v
}

// selected keeps the items, or drops them, for which a test holds.
func (r *renderer) selected(v any, c *callArgs) any {
	args := c.args
	attr := ""
	if strings.HasSuffix(c.name, "attr") {
		attr = c.str(0, "attribute", "")
		args = args[min(1, len(args)):]
	}
	out := []any{}
	for _, x := range items(v, c.line) {
		y := x
		if attr != "" {
			y = r.path(x, attr, c.line)
		}
		ok := truth(y)
		if len(args) > 0 {
			ok = r.holds(str(args[0]), y, args[1:], c.line)
		}
		if ok == strings.HasPrefix(c.name, "select") {
			out = append(out, x)
		}
	}
	return out
}

func (r *renderer) test(e test) bool {
	v := r.eval(e.of)
	args := make([]any, len(e.args))
	for i, a := range e.args {
		args[i] = r.eval(a)
	}
	return r.holds(e.name, v, args, e.line)
}

// holds says whether a test holds for a value.
func (r *renderer) holds(name string, v any, args []any, line int) bool {
	arg := func() any {
		if len(args) != 1 {
			throw(line, "the test `%s` takes one value", name)
		}
		return args[0]
	}
	_, undef := v.(undefined)
	switch name {
	case "defined":
		return !undef
	case "undefined":
		return undef
	case "none":
		return v == nil
	case "true":
		return v == true
	case "false":
		return v == false
	case "boolean":
		_, ok := v.(bool)
		return ok
	case "integer":
		_, ok := v.(int64)
		return ok
	case "float":
		_, ok := v.(float64)
		return ok
	case "number":
		_, ok := num(v)
		return ok
	case "string":
		_, ok := v.(string)
		return ok
	case "mapping":
		_, ok := v.(*Dict)
		return ok
	case "iterable", "sequence":
		switch v.(type) {
		case string, []any, tuple, *Dict:
			return true
		}
		return undef
	case "callable":
		return kind(v) == "function"
	case "odd", "even", "divisibleby":
		n, ok := whole(v)
		by := int64(2)
		if name == "divisibleby" {
			by, _ = whole(arg())
		}
		if !ok || by == 0 {
			throw(line, "the test `%s` of a %s", name, kind(v))
		}
		return (n%by == 0) == (name != "odd")
	case "eq", "equalto", "==", "sameas":
		return equal(v, arg())
	case "ne", "!=":
		return !equal(v, arg())
	case "in":
		return r.contains(arg(), v, line)
	case "lt", "lessthan", "<":
		return less(v, arg(), line)
	case "gt", "greaterthan", ">":
		return less(arg(), v, line)
	case "le", "<=":
		return !less(arg(), v, line)
	case "ge", ">=":
		return !less(v, arg(), line)
	case "lower":
		return str(v) == strings.ToLower(str(v))
	case "upper":
		return str(v) == strings.ToUpper(str(v))
	}
	throw(line, "the test `%s` is not known", name)
	return false
}

var filters map[string]func(v any, c *callArgs) any

func init() {
	text := func(f func(string) string) func(any, *callArgs) any {
		return func(v any, _ *callArgs) any { return f(str(v)) }
	}
	end := func(last bool) func(any, *callArgs) any {
		return func(v any, c *callArgs) any {
			l := items(v, c.line)
			switch {
			case len(l) == 0:
				return undefined{c.name}
			case last:
				return l[len(l)-1]
			}
			return l[0]
		}
	}
	extreme := func(greatest bool) func(any, *callArgs) any {
		return func(v any, c *callArgs) any {
			var best any = undefined{c.name}
			for i, x := range items(v, c.line) {
				if i == 0 || less(best, x, c.line) == greatest && !equal(best, x) {
					best = x
				}
			}
			return best
		}
	}
	size := func(v any, c *callArgs) any { return length(v, c.line) }
	def := func(v any, c *callArgs) any {
		if _, none := v.(undefined); none || truth(c.arg(1, "boolean", false)) && !truth(v) {
			return c.arg(0, "default_value", "")
		}
		return v
	}
	filters = map[string]func(v any, c *callArgs) any{
		"length": size, "count": size, "default": def, "d": def,
		"first": end(false), "last": end(true), "min": extreme(false), "max": extreme(true),
		"upper": text(strings.ToUpper), "lower": text(strings.ToLower), "capitalize": text(capitalize), "title": text(title),
		"string": text(func(s string) string { return s }), "safe": text(func(s string) string { return s }),
		"e": text(escape), "escape": text(escape),
		"tojson": tojson,
		"trim": func(v any, c *callArgs) any {
			if x := c.arg(0, "chars", nil); x != nil {
				return strings.Trim(str(v), c.str(0, "chars", ""))
			}
			return strings.TrimFunc(str(v), isSpace)
		},
		"replace": func(v any, c *callArgs) any {
			return c.r.replaced(str(v), c.str(0, "old", ""), c.str(1, "new", ""), c.int(2, "count", -1), c.line)
		},
		"join": func(v any, c *callArgs) any {
			var parts []string
			for _, x := range items(v, c.line) {
				if a, ok := c.named.Get("attribute"); ok {
					x = c.r.path(x, str(a), c.line)
				}
				parts = append(parts, str(x))
			}
			return c.r.joinedBy(parts, str(c.arg(0, "d", "")), c.line)
		},
		"list": func(v any, c *callArgs) any { return append([]any{}, items(v, c.line)...) },
		"items": func(v any, c *callArgs) any {
			if d, ok := v.(*Dict); ok {
				return method(d, "items").(function)(c)
			}
			if _, none := v.(undefined); none {
				return []any{}
			}
			throw(c.line, "`items` of a %s", kind(v))
			return nil
		},
		"dictsort": func(v any, c *callArgs) any {
			d, ok := v.(*Dict)
			if !ok {
				throw(c.line, "`dictsort` of a %s", kind(v))
			}
			out := method(d, "items").(function)(c).([]any)
			sort.SliceStable(out, func(i, j int) bool {
				return strings.ToLower(out[i].(tuple)[0].(string)) < strings.ToLower(out[j].(tuple)[0].(string))
			})
			return out
		},
		"int": func(v any, c *callArgs) any {
			switch x := v.(type) {
			case float64:
				if math.Abs(x) < 1<<62 {
					return int64(x)
				}
			case string:
				if n, err := strconv.ParseInt(strings.TrimSpace(x), 10, 64); err == nil {
					return n
				}
				if f, err := strconv.ParseFloat(strings.TrimSpace(x), 64); err == nil && math.Abs(f) < 1<<62 {
					return int64(f)
				}
			default:
				if n, ok := whole(v); ok {
					return n
				}
			}
			return c.arg(0, "default", int64(0))
		},
		"float": func(v any, c *callArgs) any {
			if s, ok := v.(string); ok {
				if f, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
					return f
				}
			}
			if f, ok := num(v); ok {
				return f
			}
			return c.arg(0, "default", 0.0)
		},
		"abs": func(v any, c *callArgs) any {
			if n, ok := whole(v); ok {
				return max(n, -n)
			}
			f, ok := num(v)
			if !ok {
				throw(c.line, "`abs` of a %s", kind(v))
			}
			return math.Abs(f)
		},
		"round": func(v any, c *callArgs) any {
			f, ok := num(v)
			if !ok {
				throw(c.line, "`round` of a %s", kind(v))
			}
			p := math.Pow(10, float64(c.int(0, "precision", 0)))
			return math.RoundToEven(f*p) / p
		},
		"reverse": func(v any, c *callArgs) any {
			l := items(v, c.line)
			out := make([]any, 0, len(l))
			for i := len(l) - 1; i >= 0; i-- {
				out = append(out, l[i])
			}
			if _, ok := v.(string); ok {
				return str(filters["join"](out, &callArgs{named: NewDict(), line: c.line}))
			}
			return out
		},
		"sort": func(v any, c *callArgs) any {
			out := append([]any{}, items(v, c.line)...)
			key := func(x any) any {
				if a := c.arg(2, "attribute", nil); a != nil {
					x = c.r.path(x, str(a), c.line)
				}
				if s, ok := x.(string); ok && !truth(c.arg(1, "case_sensitive", false)) {
					return strings.ToLower(s)
				}
				return x
			}
			back := truth(c.arg(0, "reverse", false))
			sort.SliceStable(out, func(i, j int) bool {
				if back {
					i, j = j, i
				}
				return less(key(out[i]), key(out[j]), c.line)
			})
			return out
		},
		"unique": func(v any, c *callArgs) any {
			out := []any{}
			for _, x := range items(v, c.line) {
				if !c.r.contains(out, x, c.line) {
					out = append(out, x)
				}
			}
			return out
		},
		"sum": func(v any, c *callArgs) any {
			total := c.arg(1, "start", int64(0))
			for _, x := range items(v, c.line) {
				if a := c.arg(0, "attribute", nil); a != nil {
					x = (&renderer{}).path(x, str(a), c.line)
				}
				total = c.r.binary(binary{"+", literal{total}, literal{x}, c.line})
			}
			return total
		},
		"indent": func(v any, c *callArgs) any {
			pad := ""
			if s, ok := c.arg(0, "width", int64(4)).(string); ok {
				pad = s
			} else {
				pad = strings.Repeat(" ", int(min(max(c.int(0, "width", 4), 0), 1000)))
			}
			lines := strings.Split(str(v), "\n")
			if int64(len(lines)) > maxOutput/int64(1+len(pad)) {
				throw(c.line, "a text that is too long")
			}
			for i, l := range lines {
				if (i > 0 || truth(c.arg(1, "first", false))) && (l != "" || truth(c.arg(2, "blank", false))) {
					lines[i] = pad + l
				}
			}
			return c.r.joinedBy(lines, "\n", c.line)
		},
	}
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")

func escape(s string) string { return escaper.Replace(s) }
