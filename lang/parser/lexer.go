package parser

import (
	"bytes"
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
	said  []*repeated // characters that mean nothing, in the order of their first places
	kinds map[string]*repeated
}

// scan makes the tokens of the file, the last one kEOF. It is false when the file is refused.
func (p *parser) scan() ([]token, bool) {
	text := p.file.Text
	if len(text) > MaxBytes {
		p.errorf("MT0104", p.span(0, 0), "the file has more than the %d bytes a .mt file may have", MaxBytes).
			Hint("a .mt file holds a model's text; data and weights are named in it by path")
		return nil, false
	}
	s := &scanner{parser: p, text: text, nl: true, kinds: map[string]*repeated{}, toks: make([]token, 0, len(text)/4+1)}
	switch {
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		s.pos = 3
	case p.otherText(text):
		return nil, false
	}
	defer s.sumUp()
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
		s.strange(text, start, s.pos, "`%s` has letters outside a to z", text).
			Hint("names are made of ASCII letters, digits and `_`")
		s.emit(kBad, start, s.pos)
	case reserved[text]:
		s.emit(kKeyword, start, s.pos)
	default:
		s.emit(kIdent, start, s.pos)
	}
}
