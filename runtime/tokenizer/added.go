package tokenizer

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/megatrain/mtc/runtime/tokenizer/pattern"
)

// added is a token that stands in a text as it is, before words are split and merged.
type added struct {
	id      int32
	content string
	special bool // not a part of what was said: it can be left out when decoding
	word    bool // only where no letter or digit touches it
	left    bool // takes the white space before it too
	right   bool // takes the white space behind it too
	normal  bool // stands in normalized text
}

// matcher finds added tokens: the leftmost, and of those that begin there the longest.
type matcher struct {
	first [256][]added // by first byte, longest first
	any   bool
}

func newMatcher(list []added) (m matcher) {
	for _, a := range list {
		if a.content == "" {
			continue
		}
		m.any = true
		m.first[a.content[0]] = append(m.first[a.content[0]], a)
	}
	for i := range m.first {
		l := m.first[i]
		sort.SliceStable(l, func(i, j int) bool { return len(l[i].content) > len(l[j].content) })
	}
	return m
}

// each calls f with the parts of a piece in order, id -1 for what is no added token. Tokens are found
// first and take white space then: one of white space may lie in what the one before it has taken, and is nothing where both take all.
func (m *matcher) each(p piece, f func(p piece, id int32)) {
	if !m.any {
		f(p, -1)
		return
	}
	s, done := p.s, 0
	for at := 0; at < len(s); {
		a := m.at(s, at)
		if a == nil {
			at++
			continue
		}
		start, end := at, at+len(a.content)
		at = end
		if a.word && (start > 0 && isWord(utf8.DecodeLastRuneInString(s[:start])) || end < len(s) && isWord(utf8.DecodeRuneInString(s[end:]))) {
			continue
		}
		if a.left {
			start = max(done, len(strings.TrimRightFunc(s[:start], unicode.IsSpace)))
		}
		if a.right {
			end = len(s) - len(strings.TrimLeftFunc(s[end:], unicode.IsSpace))
		}
		if done < start {
			f(p.cut(done, start), -1)
		}
		if start < end {
			f(p.cut(start, end), a.id)
		}
		done = end
	}
	if done < len(s) {
		f(p.cut(done, len(s)), -1)
	}
}

// at is the longest token that begins at a byte.
func (m *matcher) at(s string, at int) *added {
	l := m.first[s[at]]
	for i := range l {
		if strings.HasPrefix(s[at:], l[i].content) {
			return &l[i]
		}
	}
	return nil
}

func isWord(r rune, _ int) bool { return pattern.IsWord(r) }
