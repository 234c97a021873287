package tokenizer

import (
	"slices"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// mostMarks is after how many marks in a row x/text puts a joiner of its own between them,
// which other libraries do not.
const mostMarks = 30

// markedRun finds a character with more marks than x/text takes, at or after a byte.
func markedRun(s string, from int) (start, end int, ok bool) {
	start, marks := from, 0
	for i := from; i < len(s); {
		p := norm.NFD.PropertiesString(s[i:])
		n := max(1, p.Size())
		if p.CCC() == 0 {
			if marks > mostMarks {
				return start, i, true
			}
			start, marks = i, 0
		} else if marks++; len(p.Decomposition()) > n {
			marks++ // a mark that stands for several
		}
		i += n
	}
	return start, len(s), marks > mostMarks
}

// normalRun is a character with all its marks in a normal form: taken apart, marks in the
// order of their classes, and for forms that compose joined with the character where a
// character for both exists (Unicode Standard, 3.11).
func normalRun(f norm.Form, s string) string {
	type mark struct {
		r     rune
		class uint8
	}
	apart := norm.NFD
	if f == norm.NFKC || f == norm.NFKD {
		apart = norm.NFKD
	}
	var head []rune
	var marks []mark
	for _, r := range s {
		for _, d := range apart.String(string(r)) {
			c := norm.NFD.PropertiesString(string(d)).CCC()
			if c == 0 && len(marks) == 0 {
				head = append(head, d)
			} else {
				marks = append(marks, mark{d, c})
			}
		}
	}
	slices.SortStableFunc(marks, func(a, b mark) int { return int(a.class) - int(b.class) })
	var rest []rune
	last := uint8(0)
	for _, m := range marks {
		if (f == norm.NFC || f == norm.NFKC) && len(head) > 0 && (len(rest) == 0 || last < m.class) {
			pair := norm.NFC.String(string([]rune{head[len(head)-1], m.r}))
			if r, n := utf8.DecodeRuneInString(pair); n == len(pair) {
				head[len(head)-1] = r
				continue
			}
		}
		rest, last = append(rest, m.r), m.class
	}
	if f == norm.NFC || f == norm.NFKC {
		return norm.NFC.String(string(head)) + string(rest)
	}
	return string(head) + string(rest)
}
