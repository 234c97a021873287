package jinja

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// now is the clock of strftime_now; tests replace it.
var now = time.Now

// globals are the functions that every template has.
var globals = map[string]any{
	"raise_exception": function(func(c *callArgs) any {
		panic(&Error{Line: c.line, Why: str(c.arg(0, "message", "")), Raised: true})
	}),
	"namespace": function(func(c *callArgs) any {
		ns := &namespace{vars: map[string]any{}}
		if d, ok := c.arg(0, "", nil).(*Dict); ok {
			for k, v := range d.vals {
				ns.vars[k] = v
			}
		}
		for k, v := range c.named.vals {
			ns.vars[k] = v
		}
		return ns
	}),
	"dict": function(func(c *callArgs) any {
		d := NewDict()
		if from, ok := c.arg(0, "", nil).(*Dict); ok {
			for _, k := range from.keys {
				d.Set(k, from.vals[k])
			}
		}
		for _, k := range c.named.keys {
			d.Set(k, c.named.vals[k])
		}
		return d
	}),
	"range": function(func(c *callArgs) any {
		from, to, by := int64(0), c.int(0, "", 0), c.int(2, "", 1)
		if len(c.args) > 1 {
			from, to = to, c.int(1, "", 0)
		}
		const most = 100_000 // numbers, and where they may lie
		if by == 0 || max(from, to) > 1<<40 || min(from, to) < -1<<40 || (to-from)/by > most {
			throw(c.line, "a range of step 0, or of more than 100000 numbers")
		}
		c.r.work(int((to-from)/by)>>2, c.line)
		out := []any{}
		for i := from; by > 0 && i < to || by < 0 && i > to; i += by {
			out = append(out, i)
		}
		return out
	}),
	"strftime_now": function(func(c *callArgs) any { return strftime(now(), c.str(0, "format", ""), c.line) }),
}

// strftime writes a time in the letters of C.
func strftime(t time.Time, format string, line int) string {
	layouts := map[byte]string{'Y': "2006", 'm': "01", 'd': "02", 'B': "January", 'b': "Jan", 'A': "Monday", 'a': "Mon",
		'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'y': "06", 'j': "002", 'z': "-0700", 'Z': "MST"}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		bare := format[i] == '-' && i+1 < len(format)
		if bare {
			i++
		}
		l, ok := layouts[format[i]]
		switch {
		case format[i] == '%':
			b.WriteByte('%')
		case !ok:
			throw(line, "the letter %%%c of a date is not known", format[i])
		case bare:
			b.WriteString(strings.TrimPrefix(t.Format(l), "0"))
		default:
			b.WriteString(t.Format(l))
		}
	}
	return b.String()
}

// format is Python's `text % values`, for %s, %d, %r, %f and %%.
func format(s string, v any, line int) string {
	args, ok := v.(tuple)
	if !ok {
		args = tuple{v}
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if int64(b.Len()) > maxOutput {
			throw(line, "a text that is too long")
		}
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		j := i + 1
		for j < len(s) && strings.IndexByte("0123456789.-+ ", s[j]) >= 0 {
			j++
		}
		if j == len(s) {
			throw(line, "a %% at the end of a format")
		}
		verb := s[i : j+1]
		i = j
		if s[j] == '%' {
			b.WriteByte('%')
			continue
		}
		if len(args) == 0 {
			throw(line, "a format has more places than values")
		}
		a := args[0]
		args = args[1:]
		switch s[j] {
		case 's':
			b.WriteString(fmt.Sprintf(verb, str(a)))
		case 'r':
			b.WriteString(fmt.Sprintf(verb[:len(verb)-1]+"s", repr(a)))
		case 'd', 'i':
			f, ok := num(a)
			if !ok {
				throw(line, "%%d of a %s", kind(a))
			}
			b.WriteString(fmt.Sprintf(verb[:len(verb)-1]+"d", int64(f)))
		case 'f':
			f, ok := num(a)
			if !ok {
				throw(line, "%%f of a %s", kind(a))
			}
			b.WriteString(fmt.Sprintf(verb, f))
		default:
			throw(line, "%%%c in a format is not known", s[j])
		}
	}
	if len(args) > 0 {
		throw(line, "a format has fewer places than values")
	}
	return b.String()
}

// tojson is Python's json.dumps, without ASCII escapes unless they are asked for.
func tojson(v any, c *callArgs) any {
	w := &jsonWriter{line: c.line, ascii: truth(c.arg(-1, "ensure_ascii", false)), sorted: truth(c.arg(-1, "sort_keys", false)),
		comma: ", ", colon: ": "}
	switch in := c.arg(0, "indent", nil).(type) {
	case nil:
	case string:
		w.indent, w.lines = in, true
	default:
		w.indent, w.lines = strings.Repeat(" ", int(min(max(c.int(0, "indent", 0), 0), 100))), true
	}
	if w.lines {
		w.comma = ","
	}
	if sep := c.arg(-1, "separators", nil); sep != nil {
		l := items(sep, c.line)
		if len(l) != 2 {
			throw(c.line, "separators are two strings")
		}
		w.comma, w.colon = str(l[0]), str(l[1])
	}
	w.value(v, 0)
	return w.b.String()
}

type jsonWriter struct {
	b             strings.Builder
	line          int
	ascii, sorted bool
	lines         bool
	indent        string
	comma, colon  string
}

func (w *jsonWriter) newline(depth int) {
	if w.lines {
		w.b.WriteByte('\n')
		w.b.WriteString(strings.Repeat(w.indent, depth))
	}
}

func (w *jsonWriter) value(v any, depth int) {
	if depth > maxDepth {
		throw(w.line, "values are nested too deeply")
	}
	if int64(w.b.Len()) > maxOutput {
		throw(w.line, "a text that is too long")
	}
	switch v := v.(type) {
	case nil:
		w.b.WriteString("null")
	case bool:
		w.b.WriteString(strconv.FormatBool(v))
	case int64:
		w.b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		s := floatText(v)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			s = map[string]string{"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[s]
		}
		w.b.WriteString(s)
	case string:
		w.text(v)
	case []any, tuple:
		l := items(v, w.line)
		w.b.WriteByte('[')
		for i, x := range l {
			if i > 0 {
				w.b.WriteString(w.comma)
			}
			w.newline(depth + 1)
			w.value(x, depth+1)
		}
		if len(l) > 0 {
			w.newline(depth)
		}
		w.b.WriteByte(']')
	case *Dict:
		keys := v.keys
		if w.sorted {
			keys = append([]string{}, keys...)
			sort.Strings(keys)
		}
		w.b.WriteByte('{')
		for i, k := range keys {
			if i > 0 {
				w.b.WriteString(w.comma)
			}
			w.newline(depth + 1)
			w.text(k)
			w.b.WriteString(w.colon)
			w.value(v.vals[k], depth+1)
		}
		if len(keys) > 0 {
			w.newline(depth)
		}
		w.b.WriteByte('}')
	default:
		throw(w.line, "a %s has no JSON", kind(v))
	}
}

func (w *jsonWriter) text(s string) {
	w.b.WriteByte('"')
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch {
		case r == '"' || r == '\\':
			w.b.WriteByte('\\')
			w.b.WriteRune(r)
		case strings.ContainsRune("\n\r\t\b\f", r):
			w.b.WriteByte('\\')
			w.b.WriteByte("nrtbf"[strings.IndexRune("\n\r\t\b\f", r)])
		case r < 32 || r == 127 && w.ascii || w.ascii && r > 127 && r < 0x10000:
			fmt.Fprintf(&w.b, `\u%04x`, r)
		case w.ascii && r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&w.b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			w.b.WriteRune(r)
		}
	}
	w.b.WriteByte('"')
}
