package jinja

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// token is a word of an expression.
type token struct {
	kind byte // 'n' name, 's' string, 'i' int, 'f' float, 'o' operator, 0 end
	text string
	val  any
}

// operators, longer ones first.
var operators = []string{"**", "//", "==", "!=", "<=", ">=", "(", ")", "[", "]", "{", "}", ",", ":", ".", "|", "+", "-", "*", "/", "%", "~", "<", ">", "="}

// lex cuts an expression into tokens.
func lex(s string, line int) []token {
	var out []token
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case strings.IndexByte(" \t\n\v\f", c) >= 0:
			i++
		case c == '\'' || c == '"':
			text, n := quoted(s[i:], line)
			out = append(out, token{'s', text, text})
			i += n
		case c >= '0' && c <= '9':
			t, n := number(s[i:], line)
			out = append(out, t)
			i += n
		default:
			if n := word(s[i:]); n > 0 {
				out = append(out, token{kind: 'n', text: s[i : i+n]})
				i += n
				break
			}
			op := ""
			for _, o := range operators {
				if strings.HasPrefix(s[i:], o) {
					op = o
					break
				}
			}
			if op == "" {
				throw(line, "`%s` is not understood", s[i:min(len(s), i+8)])
			}
			out = append(out, token{kind: 'o', text: op})
			i += len(op)
		}
	}
	return append(out, token{text: "the end"})
}

func word(s string) int {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return i
		}
	}
	return len(s)
}

func number(s string, line int) (token, int) {
	n := 0
	float := false
	for n < len(s) && (s[n] >= '0' && s[n] <= '9' || s[n] == '_') {
		n++
	}
	if n+1 < len(s) && s[n] == '.' && s[n+1] >= '0' && s[n+1] <= '9' {
		float = true
		for n++; n < len(s) && s[n] >= '0' && s[n] <= '9'; n++ {
		}
	}
	if m := n; m < len(s) && (s[m] == 'e' || s[m] == 'E') {
		m++
		if m < len(s) && (s[m] == '+' || s[m] == '-') {
			m++
		}
		if m < len(s) && s[m] >= '0' && s[m] <= '9' {
			for float = true; m < len(s) && s[m] >= '0' && s[m] <= '9'; m++ {
			}
			n = m
		}
	}
	text := strings.ReplaceAll(s[:n], "_", "")
	if float {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			throw(line, "%s is not a number", text)
		}
		return token{'f', text, v}, n
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		throw(line, "%s is too large", text)
	}
	return token{'i', text, v}, n
}

// quoted reads a string of Python's.
func quoted(s string, line int) (string, int) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		c := s[i]
		if c == s[0] {
			return b.String(), i + 1
		}
		if c != '\\' || i+1 == len(s) {
			b.WriteByte(c)
			continue
		}
		i++
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[i]]
		switch e := strings.IndexByte(`ntrfvab0\'"`+"\n", s[i]); {
		case digits > 0 && i+digits < len(s):
			v, err := strconv.ParseUint(s[i+1:i+1+digits], 16, 32)
			if err != nil || v > utf8.MaxRune {
				throw(line, "`%s` is not a character", s[i-1:i+1+digits])
			}
			b.WriteRune(rune(v))
			i += digits
		case e == len(`ntrfvab0\'"`): // a line that goes on
		case e >= 0:
			b.WriteByte("\n\t\r\f\v\a\b\x00\\'\""[e])
		default:
			b.WriteByte('\\')
			b.WriteByte(s[i])
		}
	}
	throw(line, "a string is not closed")
	return "", 0
}
