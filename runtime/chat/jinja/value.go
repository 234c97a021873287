package jinja

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Values are nil (none), bool, int64, float64, string, []any, tuple, *Dict, *namespace, *loop,
// undefined, *macro and function.
type (
	tuple     []any
	undefined struct{ name string }
	namespace struct{ vars map[string]any }
	function  func(c *callArgs) any
)

// Dict is a mapping that keeps the order of its keys, as Python's does.
type Dict struct {
	keys []string
	vals map[string]any
}

// NewDict is an empty dict.
func NewDict() *Dict { return &Dict{vals: map[string]any{}} }

// Set enters a value; a new key comes last.
func (d *Dict) Set(key string, val any) {
	if _, ok := d.vals[key]; !ok {
		d.keys = append(d.keys, key)
	}
	d.vals[key] = val
}

// Get gives the value of a key.
func (d *Dict) Get(key string) (any, bool) {
	v, ok := d.vals[key]
	return v, ok
}

// Keys are the keys in their order.
func (d *Dict) Keys() []string { return d.keys }

// FromJSON reads a value with the order of its keys, whole numbers as ints.
func FromJSON(text []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	v, err := decode(dec, 0)
	if err != nil {
		return nil, err
	}
	if rest := bytes.TrimSpace(text[dec.InputOffset():]); len(rest) > 0 {
		return nil, &json.SyntaxError{Offset: dec.InputOffset()}
	}
	return v, nil
}

func decode(dec *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("values are nested more than %d deep", maxDepth)
	}
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Number:
		if i, err := strconv.ParseInt(string(t), 10, 64); err == nil {
			return i, nil
		}
		return t.Float64()
	case json.Delim:
		if t == '[' {
			l := []any{}
			for dec.More() {
				v, err := decode(dec, depth+1)
				if err != nil {
					return nil, err
				}
				l = append(l, v)
			}
			_, err := dec.Token()
			return l, err
		}
		d := NewDict()
		for dec.More() {
			k, err := dec.Token()
			if err != nil {
				return nil, err
			}
			v, err := decode(dec, depth+1)
			if err != nil {
				return nil, err
			}
			d.Set(k.(string), v)
		}
		_, err := dec.Token()
		return d, err
	}
	return t, nil
}

// truth is Python's bool().
func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case tuple:
		return len(v) > 0
	case *Dict:
		return len(v.keys) > 0
	}
	return true
}

// str is Python's str().
func str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case undefined:
		return ""
	}
	return repr(v)
}

// repr is Python's repr().
func repr(v any) string {
	var p printer
	p.value(v, 0)
	return p.b.String()
}

// printer writes values as Python does.
type printer struct{ b strings.Builder }

func (p *printer) value(v any, depth int) {
	if depth > maxNested {
		throw(0, "values are nested too deeply")
	}
	if int64(p.b.Len()) > maxOutput { // lists that hold one list many times are short and print long
		throw(0, "a text that is too long")
	}
	switch v := v.(type) {
	case nil:
		p.b.WriteString("None")
	case bool:
		p.b.WriteString(map[bool]string{true: "True", false: "False"}[v])
	case int64:
		p.b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		p.b.WriteString(floatText(v))
	case string:
		p.b.WriteString(quotePython(v))
	case []any:
		p.b.WriteByte('[')
		p.list(v, depth)
		p.b.WriteByte(']')
	case tuple:
		p.b.WriteByte('(')
		if p.list(v, depth); len(v) == 1 {
			p.b.WriteByte(',')
		}
		p.b.WriteByte(')')
	case *Dict:
		p.b.WriteByte('{')
		for i, k := range v.keys {
			if i > 0 {
				p.b.WriteString(", ")
			}
			p.b.WriteString(quotePython(k) + ": ")
			p.value(v.vals[k], depth+1)
		}
		p.b.WriteByte('}')
	case undefined:
		p.b.WriteString("Undefined")
	default:
		fmt.Fprintf(&p.b, "<%s>", kind(v))
	}
}

func (p *printer) list(l []any, depth int) {
	for i, x := range l {
		if i > 0 {
			p.b.WriteString(", ")
		}
		p.value(x, depth+1)
	}
}

// floatText is the shortest decimal that reads back as the number, as Python writes it.
func floatText(v float64) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func quotePython(s string) string {
	q := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	var b strings.Builder
	b.WriteByte(q)
	for _, r := range s {
		switch {
		case r == rune(q) || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < 32 || r == 127:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte(q)
	return b.String()
}

// kind names the type of a value, for messages.
func kind(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case bool:
		return "boolean"
	case int64:
		return "integer"
	case float64:
		return "float"
	case string:
		return "string"
	case []any:
		return "list"
	case tuple:
		return "tuple"
	case *Dict:
		return "dict"
	case *namespace:
		return "namespace"
	case undefined:
		return "undefined `" + v.name + "`"
	case function, *macro:
		return "function"
	}
	return "loop"
}

// items are the values that a loop over v takes.
func items(v any, line int) []any {
	switch v := v.(type) {
	case []any:
		return v
	case tuple:
		return v
	case undefined:
		return nil
	case string:
		var out []any
		for i := 0; i < len(v); {
			_, n := utf8.DecodeRuneInString(v[i:])
			out = append(out, v[i:i+n])
			i += n
		}
		return out
	case *Dict:
		var out []any
		for _, k := range v.keys {
			out = append(out, k)
		}
		return out
	}
	throw(line, "a %s cannot be looped over", kind(v))
	return nil
}

// equal is Python's ==.
func equal(a, b any) bool {
	c := comparison{}
	return c.equal(a, b, 0)
}

// comparison counts what it compares.
type comparison struct{ n int }

func (c *comparison) equal(a, b any, depth int) bool {
	if c.n++; c.n > maxItems*8 || depth > maxNested {
		throw(0, "values that are too large to compare")
	}
	if x, ok := num(a); ok {
		y, ok := num(b)
		return ok && x == y
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case string:
		s, ok := b.(string)
		return ok && a == s
	case []any:
		l, ok := b.([]any)
		return ok && c.equalAll(a, l, depth+1)
	case tuple:
		l, ok := b.(tuple)
		return ok && c.equalAll(a, l, depth+1)
	case *Dict:
		d, ok := b.(*Dict)
		if !ok || len(a.keys) != len(d.keys) {
			return false
		}
		for k, v := range a.vals {
			w, ok := d.vals[k]
			if !ok || !c.equal(v, w, depth+1) {
				return false
			}
		}
		return true
	case undefined:
		_, ok := b.(undefined)
		return ok
	}
	return false
}

func (c *comparison) equalAll(a, b []any, depth int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !c.equal(a[i], b[i], depth) {
			return false
		}
	}
	return true
}

func equalAll(a, b []any) bool {
	c := comparison{}
	return c.equalAll(a, b, 1)
}

// num is a number's value; true is 1.
func num(v any) (float64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// whole is an int's value; true is 1.
func whole(v any) (int64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int64:
		return v, true
	}
	return 0, false
}

// less is Python's <, for numbers, strings and lists.
func less(a, b any, line int) bool {
	x, ok := num(a)
	y, ok2 := num(b)
	if ok && ok2 {
		return x < y
	}
	s, ok := a.(string)
	t, ok2 := b.(string)
	if ok && ok2 {
		return s < t
	}
	l, ok := a.([]any)
	m, ok2 := b.([]any)
	if ok && ok2 {
		for i := range min(len(l), len(m)) {
			if !equal(l[i], m[i]) {
				return less(l[i], m[i], line)
			}
		}
		return len(l) < len(m)
	}
	throw(line, "a %s and a %s have no order", kind(a), kind(b))
	return false
}
