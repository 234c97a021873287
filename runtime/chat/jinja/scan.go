package jinja

import "strings"

// seg is a tag or the text between tags.
type seg struct {
	kind byte // 't' text, '{' expression, '%' statement
	text string
	line int
}

// scan cuts a template into tags and text, and trims the text: a line break behind a block
// goes, spaces that begin the line of a block go, `-` takes all white space on its side.
func scan(src string) []seg {
	src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	src = strings.TrimSuffix(src, "\n") // a last line break is not a part of a template
	var out []seg
	line := 1
	add := func(kind byte, text string) {
		if kind != 't' || text != "" {
			out = append(out, seg{kind, text, line})
		}
	}
	rest, trim, begin := src, byte(0), true // what the tag before takes; whether the text begins a line
	for {
		at := opener(rest)
		lit := rest
		if at >= 0 {
			lit = rest[:at]
		}
		cut, begins := after(lit, trim, begin)
		if at < 0 {
			add('t', cut)
			return out
		}
		kind := rest[at+1]
		atLine := line + strings.Count(lit, "\n")
		body, n := tag(rest[at:], atLine)
		open, shut, inner := signs(body)
		add('t', before(cut, open, kind, begins))
		line = atLine
		next := line + strings.Count(rest[at:at+n], "\n")
		rest, trim, begin = rest[at+n:], shut, false
		if shut == 0 && kind != '{' {
			trim = '\n'
		}
		switch {
		case kind == '#':
		case kind == '%' && strings.TrimSpace(inner) == "raw":
			end := endRaw(rest)
			if end < 0 {
				throw(line, "`raw` without `endraw`")
			}
			text, begins := after(rest[:end], trim, false)
			next += strings.Count(rest[:end], "\n")
			body, n := tag(rest[end:], next)
			open, shut, _ := signs(body)
			add('t', before(text, open, '%', begins))
			if trim = shut; shut == 0 {
				trim = '\n'
			}
			rest = rest[end+n:]
		default:
			add(kind, inner)
		}
		line = next
	}
}

// opener is where the next tag begins, -1: nowhere.
func opener(s string) int {
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '{' && strings.IndexByte("{%#", s[i+1]) >= 0 {
			return i
		}
	}
	return -1
}

// endRaw is where the tag `endraw` begins.
func endRaw(s string) int {
	for i := 0; i+1 < len(s); i++ {
		if s[i] != '{' || s[i+1] != '%' {
			continue
		}
		body, _, ok := strings.Cut(s[i+2:], "%}")
		if ok && strings.TrimSpace(strings.Trim(body, "-+")) == "endraw" {
			return i
		}
	}
	return -1
}

// signs takes the `-` or `+` from both ends of a tag.
func signs(body string) (open, shut byte, inner string) {
	if body != "" && strings.IndexByte("-+", body[0]) >= 0 {
		open, body = body[0], body[1:]
	}
	if body != "" && strings.IndexByte("-+", body[len(body)-1]) >= 0 {
		shut, body = body[len(body)-1], body[:len(body)-1]
	}
	return open, shut, body
}

const spaces = " \t\v\f"

// after trims what follows a tag.
func after(lit string, trim byte, begin bool) (string, bool) {
	switch trim {
	case '-':
		cut := strings.TrimLeft(lit, spaces+"\n")
		return cut, strings.HasSuffix(lit[:len(lit)-len(cut)], "\n")
	case '\n':
		if cut, ok := strings.CutPrefix(lit, "\n"); ok {
			return cut, true
		}
	}
	return lit, begin
}

// before trims what stands before a tag.
func before(lit string, open, kind byte, begin bool) string {
	switch {
	case open == '-':
		return strings.TrimRight(lit, spaces+"\n")
	case open == '+' || kind == '{':
		return lit
	}
	cut := strings.TrimRight(lit, spaces)
	if strings.HasSuffix(cut, "\n") || cut == "" && begin {
		return cut
	}
	return lit
}

// tag reads the tag that s begins with; closers inside of strings and braces do not count.
func tag(s string, line int) (body string, n int) {
	shut := map[byte]string{'{': "}}", '%': "%}", '#': "#}"}[s[1]]
	var in byte
	depth := 0
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case in != 0:
			if c == '\\' {
				i++
			} else if c == in {
				in = 0
			}
		case s[1] == '#':
			if strings.HasPrefix(s[i:], shut) {
				return s[2:i], i + 2
			}
		case c == '\'' || c == '"':
			in = c
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		case strings.HasPrefix(s[i:], shut):
			return s[2:i], i + 2
		}
	}
	throw(line, "`%s` is not closed", s[:2])
	return "", 0
}
