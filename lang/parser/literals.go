package parser

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// number takes an int or float: digits, then maybe a point with digits, then maybe an exponent.
func (s *scanner) number() {
	start := s.pos
	digits := func() {
		for isDigit(s.at(0)) {
			s.pos++
		}
	}
	digits()
	k := kInt
	if s.at(0) == '.' && isDigit(s.at(1)) {
		k = kFloat
		s.pos++
		digits()
	}
	if c := s.at(0); c == 'e' || c == 'E' {
		sign := 0
		if s.at(1) == '+' || s.at(1) == '-' {
			sign = 1
		}
		if isDigit(s.at(1 + sign)) {
			k = kFloat
			s.pos += 1 + sign
			digits()
		}
	}
	good := s.pos
	for isLetter(s.at(0)) || isDigit(s.at(0)) {
		s.pos++
	}
	text := string(s.text[start:s.pos])
	span := s.span(start, s.pos)
	switch {
	case s.pos > good:
		d := s.errorf("MT0106", span, "`%s` is not a number", text)
		rest := string(s.text[good:s.pos])
		if plain := strings.ReplaceAll(text, "_", ""); isDigits(plain) {
			d.Hint("write `%s`, without `_`", plain)
		} else if n := multiples[rest]; n != "" {
			d.Hint("numbers have no prefixes: write `%s * %s`", text[:good-start], n)
		} else if rest[0] != '_' && !strings.HasPrefix(text, "0x") {
			d.Hint("a unit stands apart: `%s %s`", s.text[start:good], rest)
		} else {
			d.Hint("numbers are decimal: `4096`, `0.02`, `6e-4`")
		}
	case s.at(0) == '.' && !isLetter(s.at(1)) && s.at(1) != '.':
		s.pos++
		s.errorf("MT0106", s.span(start, s.pos), "`%s.` has no digits after the point", text).Hint("write `%s.0`", text)
	case k == kInt:
		if _, err := strconv.ParseInt(text, 10, 64); err != nil {
			s.errorf("MT0106", span, "`%s` does not fit 64 bits", clip(text)).
				Hint("the largest int is 9223372036854775807; with a point or an exponent it is a float")
		} else {
			s.emit(kInt, start, s.pos)
			return
		}
	default:
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			s.errorf("MT0106", span, "`%s` is larger than a float can be", clip(text)).Hint("the largest float is about 1.8e308")
		} else {
			s.emit(kFloat, start, s.pos)
			return
		}
	}
	s.emit(kBad, start, s.pos)
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// clip shortens a long text for a message.
func clip(s string) string {
	if len(s) > 40 {
		return s[:37] + "..."
	}
	return s
}

// str takes a string. It ends on its line.
func (s *scanner) str() {
	start := s.pos
	lineEnd := start + lineLen(s.text[start:])
	good, open := true, false
	for s.pos++; s.pos < lineEnd && s.text[s.pos] != '"'; s.pos++ {
		if s.text[s.pos] == '\\' {
			if s.pos+1 < lineEnd && strings.IndexByte(`"\nt`, s.text[s.pos+1]) < 0 {
				_, n := utf8.DecodeRune(s.text[s.pos+1:])
				s.errorf("MT0105", s.span(s.pos, s.pos+1+n), "`%s` means nothing in a string", visible(s.text[s.pos:s.pos+1+n])).
					Hint("write `\\\\` for a backslash; `\\\"`, `\\n` and `\\t` are the others; paths take `/` everywhere")
				good = false
				s.pos += n
			} else {
				s.pos++
			}
		}
	}
	if s.pos >= lineEnd {
		s.pos = lineEnd
		s.errorf("MT0105", s.span(start, start+1), "the string that starts here does not end on its line").
			Hint("end it with `\"`")
		good, open = false, true
	} else {
		s.pos++
	}
	if !s.checkText(start, s.pos, "a string") {
		good = false
	}
	k := kString
	if !good {
		k = kBad
	}
	s.emit(k, start, s.pos)
	s.toks[len(s.toks)-1].rest = open
}

// unquote is the value of a good string token.
func unquote(text string) string {
	text = text[1 : len(text)-1]
	if !strings.Contains(text, `\`) {
		return text
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n", `\t`, "\t").Replace(text)
}

// multiples are what the letters behind a number stand for elsewhere.
var multiples = map[string]string{
	"K": "1024", "k": "1000", "M": "1024 * 1024", "G": "1024 * 1024 * 1024",
	"KiB": "1024", "KB": "1000", "MiB": "1024 * 1024", "MB": "1000 * 1000", "GiB": "1024 * 1024 * 1024", "GB": "1000 * 1000 * 1000",
}
