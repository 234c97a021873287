package parser

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/megatrain/mtc/lang/ast"
)

// scanner makes tokens of a text in one pass.
type scanner struct {
	*parser
	text  []byte
	pos   int
	nl    bool // a line break, or the start of the text, came before
	toks  []token
	depth depthCounter
}

// scan makes the tokens of the file, the last one kEOF. It is false when the file is refused.
func (p *parser) scan() ([]token, bool) {
	text := p.file.Text
	if len(text) > MaxBytes {
		p.errorf("MT0104", p.span(0, 0), "the file has %d bytes, more than the %d a .mt file may have", len(text), MaxBytes).
			Hint("a .mt file holds a model's text; data and weights are named in it by path")
		return nil, false
	}
	s := &scanner{parser: p, text: text, nl: true, toks: make([]token, 0, len(text)/4+1)}
	switch {
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		s.pos = 3
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		p.errorf("MT0103", p.span(0, 2), "the file is UTF-16, a .mt file is UTF-8").Hint("save the file as UTF-8")
		return nil, false
	}
	for s.pos < len(s.text) {
		if !s.next() {
			return nil, false
		}
	}
	s.emit(kEOF, len(s.text), len(s.text))
	return s.toks, true
}

// next scans one token, comment or run of blanks. It is false when the nesting is too deep.
func (s *scanner) next() bool {
	c := s.text[s.pos]
	start := s.pos
	switch {
	case c == '\n':
		s.nl = true
		s.pos++
	case c == ' ' || c == '\t' || c == '\r' && s.at(1) == '\n':
		s.pos++
	case c == '/' && s.at(1) == '/':
		s.comment()
	case isLetter(c) || c >= utf8.RuneSelf && s.letterAhead():
		s.word()
	case isDigit(c):
		s.number()
	case c == '"':
		s.str()
	default:
		if n := operatorAt(s.text[s.pos:]); n > 0 {
			s.pos += n
			s.emit(symbolKind(s.text[start:s.pos]), start, s.pos)
		} else {
			s.unknown()
		}
	}
	if n := len(s.toks); n > 0 && s.toks[n-1].start >= start {
		t := &s.toks[n-1]
		if s.depth.add(t) > MaxDepth {
			s.errorf("MT0104", t.span(s.file), "nested deeper than %d", MaxDepth).
				Hint("give inner parts a name of their own: a variable, or a block")
			return false
		}
		if s.depth.chain > MaxChain {
			s.errorf("MT0104", t.span(s.file), "an expression of more than %d operators", MaxChain).
				Hint("give parts of it a name of their own")
			return false
		}
	}
	return true
}

func (s *scanner) at(i int) byte {
	if s.pos+i < len(s.text) {
		return s.text[s.pos+i]
	}
	return 0
}

func (s *scanner) emit(k kind, start, end int) {
	s.toks = append(s.toks, token{kind: k, text: string(s.text[start:end]), start: start, end: end, nl: s.nl})
	s.nl = false
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

func (s *scanner) letterAhead() bool {
	r, _ := utf8.DecodeRune(s.text[s.pos:])
	return r != utf8.RuneError && unicode.IsLetter(r)
}

// operatorAt returns the length of the operator or punctuation that b starts with, 0 for none.
func operatorAt(b []byte) int {
	if len(b) > 1 {
		switch string(b[:2]) {
		case "+=", "==", "!=", "<=", ">=":
			return 2
		}
	}
	if strings.IndexByte("()[]{},:;.=+-*/%<>", b[0]) >= 0 {
		return 1
	}
	return 0
}

func symbolKind(b []byte) kind {
	switch string(b) {
	case "(", ")", "[", "]", "{", "}", ",", ":", ";", ".", "=", "+=":
		return kPunct
	}
	return kOp
}

// comment takes `// ...` up to the line's end.
func (s *scanner) comment() {
	start := s.pos
	end := start + lineLen(s.text[start:])
	s.pos = end
	s.checkText(start, end, "a comment")
	s.comments = append(s.comments, ast.Comment{
		Span: s.span(start, end),
		Text: strings.TrimRight(string(s.text[start:end]), " \t\r"),
		Own:  s.nl,
	})
}

// lineLen is the number of bytes before the line's end.
func lineLen(b []byte) int {
	n := bytes.IndexByte(b, '\n')
	if n < 0 {
		n = len(b)
	}
	if n > 0 && b[n-1] == '\r' {
		n--
	}
	return n
}

// word takes a name or a reserved word.
func (s *scanner) word() {
	start, plain := s.pos, true
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(s.text[s.pos:])
			if r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
				break
			}
			plain = false
			s.pos += n
			continue
		}
		if !isLetter(c) && !isDigit(c) {
			break
		}
		s.pos++
	}
	text := string(s.text[start:s.pos])
	switch {
	case !plain:
		s.errorf("MT0103", s.span(start, s.pos), "`%s` has letters outside a to z", text).
			Hint("names are made of ASCII letters, digits and `_`")
		s.emit(kBad, start, s.pos)
	case reserved[text]:
		s.emit(kKeyword, start, s.pos)
	default:
		s.emit(kIdent, start, s.pos)
	}
}

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

// checkText reports bytes that may not stand in a comment or a string, once for each run.
func (s *scanner) checkText(start, end int, in string) bool {
	good := true
	for i := start; i < end; {
		n := badRun(s.text[i:end])
		if n == 0 {
			_, size := utf8.DecodeRune(s.text[i:end])
			i += size
			continue
		}
		good = false
		s.errorf("MT0103", s.span(i, i+n), "%s in %s", describeBad(s.text[i:i+n]), in).Hint("delete it")
		i += n
	}
	return good
}

// badRun is the length of the run of equal-kind bad bytes at the start of b: invalid UTF-8, or
// one control character repeated.
func badRun(b []byte) int {
	r, size := utf8.DecodeRune(b)
	invalid := r == utf8.RuneError && size <= 1
	if !invalid && !(r < 0x20 && r != '\t' && r != '\n' || r == 0x7f) {
		return 0
	}
	n := size
	for n < len(b) {
		q, size := utf8.DecodeRune(b[n:])
		if (q == utf8.RuneError && size <= 1) != invalid || !invalid && q != r {
			break
		}
		n += size
	}
	return n
}

// describeBad names a run of bad bytes.
func describeBad(b []byte) string {
	r, size := utf8.DecodeRune(b)
	switch {
	case r == utf8.RuneError && size <= 1:
		if len(b) == 1 {
			return fmt.Sprintf("invalid UTF-8 (byte 0x%02X)", b[0])
		}
		return fmt.Sprintf("invalid UTF-8 (%d bytes from 0x%02X)", len(b), b[0])
	case r == 0:
		return times("NUL byte", len(b))
	case r == '\r':
		return times("carriage return without a line feed", len(b))
	}
	return times(fmt.Sprintf("control character U+%04X", r), len(b)/size)
}

func times(what string, n int) string {
	if n == 1 {
		return what
	}
	return fmt.Sprintf("%d times %s", n, what)
}

// visible shows bytes that may not print.
func visible(b []byte) string {
	q := strconv.Quote(string(b))
	return strings.ReplaceAll(q[1:len(q)-1], `\\`, `\`)
}

// unknown reports a character that starts no token, a run of the same one once.
func (s *scanner) unknown() {
	start := s.pos
	rest := s.text[s.pos:]
	if n := badRun(rest); n > 0 {
		s.pos += n
		s.errorf("MT0103", s.span(start, s.pos), "%s", describeBad(rest[:n])).Hint("delete it")
		s.emit(kBad, start, s.pos)
		return
	}
	r, size := utf8.DecodeRune(rest)
	if r == '#' {
		s.pos += lineLen(rest)
		s.errorf("MT0103", s.span(start, start+1), "unknown character `#`").Hint("a comment starts with `//`")
		s.emit(kBad, start, s.pos)
		s.toks[len(s.toks)-1].rest = true
		return
	}
	for s.pos < len(s.text) && bytes.HasPrefix(s.text[s.pos:], rest[:size]) {
		s.pos += size
	}
	what := fmt.Sprintf("unknown character `%c`", r)
	if !unicode.IsPrint(r) {
		what = fmt.Sprintf("unknown character U+%04X", r)
	}
	d := s.errorf("MT0103", s.span(start, s.pos), "%s", what)
	if h := charHint[r]; h != "" {
		d.Hint("%s", h)
	}
	s.emit(kBad, start, s.pos)
}

// charHint says what to write instead of characters from other languages and word processors.
var charHint = map[rune]string{
	'\'': "strings take double quotes: `\"...\"`", '`': "strings take double quotes: `\"...\"`",
	'“': "strings take plain double quotes: `\"...\"`", '”': "strings take plain double quotes: `\"...\"`",
	'’': "strings take plain double quotes: `\"...\"`", '‘': "strings take plain double quotes: `\"...\"`",
	'!': "write `not`, or `!=` between two values", '&': "write `and`", '|': "write `or`",
	'@': "a matrix product is `linear(x, width)`", '^': "write a product for a power", '×': "write `*`",
	'−': "write `-`", '–': "write `-`", '—': "write `-`", '≤': "write `<=`", '≥': "write `>=`", '≠': "write `!=`",
	'\u00a0': "a no-break space: write a plain one", '\ufeff': "a byte order mark may only start the file",
	'\u200b': "a zero-width space: delete it", '？': "conditions are `if c then a else b`", '?': "conditions are `if c then a else b`",
	'：': "write `:`", '，': "write `,`", '（': "write `(`", '）': "write `)`", '＝': "write `=`",
}
