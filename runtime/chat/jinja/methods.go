package jinja

import (
	"strings"
	"unicode"
)

// method is a method of a string or dict; nil where there is none.
func method(v any, name string) any {
	switch v := v.(type) {
	case string:
		if f := stringMethods[name]; f != nil {
			return function(func(c *callArgs) any { return f(v, c) })
		}
	case *Dict:
		switch name {
		case "items":
			return function(func(*callArgs) any {
				out := []any{}
				for _, k := range v.keys {
					out = append(out, tuple{k, v.vals[k]})
				}
				return out
			})
		case "keys":
			return function(func(c *callArgs) any { return append([]any{}, items(v, c.line)...) })
		case "values":
			return function(func(*callArgs) any {
				out := []any{}
				for _, k := range v.keys {
					out = append(out, v.vals[k])
				}
				return out
			})
		case "get":
			return function(func(c *callArgs) any {
				if x, ok := v.vals[str(c.arg(0, "key", nil))]; ok {
					return x
				}
				return c.arg(1, "default", nil)
			})
		}
	case []any:
		switch name {
		case "index", "count":
			return function(func(c *callArgs) any {
				n := int64(0)
				for i, x := range v {
					if equal(x, c.arg(0, "value", nil)) {
						if name == "index" {
							return int64(i)
						}
						n++
					}
				}
				if name == "index" {
					throw(c.line, "the value is not in the list")
				}
				return n
			})
		}
	}
	return nil
}

var stringMethods map[string]func(s string, c *callArgs) any

func init() {
	plain := func(f func(string) string) func(string, *callArgs) any {
		return func(s string, _ *callArgs) any { return f(s) }
	}
	strip := func(all func(string, string) string, white func(string, func(rune) bool) string) func(string, *callArgs) any {
		return func(s string, c *callArgs) any {
			if v := c.arg(0, "chars", nil); v != nil {
				return all(s, c.str(0, "chars", ""))
			}
			return white(s, isSpace)
		}
	}
	affix := func(f func(string, string) bool) func(string, *callArgs) any {
		return func(s string, c *callArgs) any {
			if l, ok := c.arg(0, "prefix", nil).(tuple); ok {
				for _, x := range l {
					if f(s, str(x)) {
						return true
					}
				}
				return false
			}
			return f(s, c.str(0, "prefix", ""))
		}
	}
	all := func(is func(rune) bool) func(string, *callArgs) any {
		return func(s string, _ *callArgs) any {
			return s != "" && strings.IndexFunc(s, func(r rune) bool { return !is(r) }) < 0
		}
	}
	stringMethods = map[string]func(s string, c *callArgs) any{
		"strip":      strip(strings.Trim, strings.TrimFunc),
		"lstrip":     strip(strings.TrimLeft, strings.TrimLeftFunc),
		"rstrip":     strip(strings.TrimRight, strings.TrimRightFunc),
		"upper":      plain(strings.ToUpper),
		"lower":      plain(strings.ToLower),
		"title":      plain(title),
		"capitalize": plain(capitalize),
		"startswith": affix(strings.HasPrefix),
		"endswith":   affix(strings.HasSuffix),
		"isdigit":    all(unicode.IsDigit),
		"isalpha":    all(unicode.IsLetter),
		"isspace":    all(isSpace),
		"removeprefix": func(s string, c *callArgs) any {
			return strings.TrimPrefix(s, c.str(0, "prefix", ""))
		},
		"removesuffix": func(s string, c *callArgs) any {
			return strings.TrimSuffix(s, c.str(0, "suffix", ""))
		},
		"replace": func(s string, c *callArgs) any {
			return c.r.replaced(s, c.str(0, "old", ""), c.str(1, "new", ""), c.int(2, "count", -1), c.line)
		},
		"find": func(s string, c *callArgs) any {
			i := strings.Index(s, c.str(0, "sub", ""))
			if i < 0 {
				return int64(-1)
			}
			return length(s[:i], c.line)
		},
		"count": func(s string, c *callArgs) any { return int64(strings.Count(s, c.str(0, "sub", ""))) },
		"split": func(s string, c *callArgs) any {
			return splitString(s, c, func(s, sep string) (a, b string, ok bool) { return strings.Cut(s, sep) }, false)
		},
		"rsplit": func(s string, c *callArgs) any {
			return splitString(s, c, func(s, sep string) (a, b string, ok bool) {
				i := strings.LastIndex(s, sep)
				if i < 0 {
					return s, "", false
				}
				return s[i+len(sep):], s[:i], true
			}, true)
		},
		"splitlines": func(s string, _ *callArgs) any {
			out := []any{}
			for l := range strings.Lines(s) {
				out = append(out, strings.TrimRight(l, "\r\n"))
			}
			return out
		},
		"join": func(s string, c *callArgs) any {
			var parts []string
			for _, x := range items(c.arg(0, "iterable", nil), c.line) {
				p, ok := x.(string)
				if !ok {
					throw(c.line, "`join` wants strings, not a %s", kind(x))
				}
				parts = append(parts, p)
			}
			return c.r.joinedBy(parts, s, c.line)
		},
	}
}

// splitString cuts at a separator, or at white space, at most so often.
func splitString(s string, c *callArgs, cut func(s, sep string) (a, b string, ok bool), back bool) any {
	out := []any{}
	most := c.int(1, "maxsplit", -1)
	if c.arg(0, "sep", nil) == nil {
		if most < 0 {
			for _, f := range strings.FieldsFunc(s, isSpace) {
				out = append(out, f)
			}
			return out
		}
		throw(c.line, "`split` by white space with a largest number is not known")
	}
	sep := c.str(0, "sep", "")
	if sep == "" {
		throw(c.line, "`split` at nothing")
	}
	for rest := s; ; {
		a, b, ok := cut(rest, sep)
		if !ok || most >= 0 && int64(len(out)) >= most {
			out = append(out, rest)
			break
		}
		out = append(out, a)
		rest = b
	}
	if back {
		for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
			out[i], out[j] = out[j], out[i]
		}
	}
	return out
}

// isSpace is Python's notion of white space, which has four separators more than Unicode's.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

func capitalize(s string) string {
	for i, r := range s {
		if i == 0 {
			return string(unicode.ToTitle(r)) + strings.ToLower(s[len(string(r)):])
		}
	}
	return s
}

func title(s string) string {
	out := []rune(strings.ToLower(s))
	start := true
	for i, r := range out {
		if unicode.IsLetter(r) {
			if start {
				out[i] = unicode.ToTitle(r)
			}
			start = false
		} else {
			start = true
		}
	}
	return string(out)
}
