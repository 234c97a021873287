package parser

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

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
		s.strange(kindOfBad(s.text[i:i+n]), i, i+n, "%s in %s", describeBad(s.text[i:i+n]), in).Hint("delete it")
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

// kindOfBad is the same for bad bytes that have one cause: all that are no UTF-8, or one control character.
func kindOfBad(b []byte) string {
	if r, size := utf8.DecodeRune(b); r != utf8.RuneError || size > 1 {
		return string(r)
	}
	return "invalid UTF-8"
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
		s.strange(kindOfBad(rest[:n]), start, s.pos, "%s", describeBad(rest[:n])).Hint("delete it")
		s.emit(kBad, start, s.pos)
		return
	}
	r, size := utf8.DecodeRune(rest)
	if r == '#' {
		s.pos += lineLen(rest)
		s.strange("#", start, start+1, "unknown character `#`").Hint("a comment starts with `//`")
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
	d := s.strange(string(r), start, s.pos, "%s", what)
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
