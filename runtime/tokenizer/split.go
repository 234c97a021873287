package tokenizer

import (
	"strings"

	"github.com/megatrain/mtc/runtime/tokenizer/pattern"
)

// splitter cuts a piece into words.
type splitter interface {
	split(p piece, track bool, f func(p piece))
}

// gpt2Words is what byte-level BPE splits by where a file names no pattern of its own.
const gpt2Words = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// byPattern cuts at the matches of a pattern; how says what becomes of them.
type byPattern struct {
	what   *pattern.Pattern
	how    string // behaviours as files name them
	invert bool   // the matches are the words, what lies between them separates
}

// behaviours are the words for how.
var behaviours = []string{"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"}

func (s byPattern) split(p piece, _ bool, f func(p piece)) {
	// from is where the word begins that is not ended yet, -1: none; last: it ends in a match.
	from, last := 0, false
	flush := func(to int) {
		if from < to {
			f(p.cut(from, to))
		}
		from = to
	}
	s.what.Each(p.s, func(start, end int, match bool) {
		match = match != s.invert
		switch s.how {
		case "Removed":
			if match {
				from = end
				return
			}
			flush(end)
		case "Isolated":
			flush(end)
		case "MergedWithPrevious":
			if !match {
				flush(start)
			} else {
				if last {
					flush(start)
				}
				flush(end)
			}
			last = match
		case "MergedWithNext":
			if match || !last {
				flush(start)
			}
			last = match
		case "Contiguous":
			if match != last {
				flush(start)
			}
			last = match
		}
	})
	if s.how != "Removed" {
		flush(len(p.s))
	}
}

// spaced puts a space before a piece that does not begin with one.
type spaced struct{}

func (spaced) split(p piece, track bool, f func(p piece)) {
	if !strings.HasPrefix(p.s, " ") {
		p = prepend(" ").apply(p, track)
	}
	f(p)
}

// metaspace writes spaces as a character of its own and, as the scheme says, puts one at the
// beginning ("always", "first": of the text, "never").
type metaspace struct {
	mark   string
	scheme string
	cut    bool
	what   *pattern.Pattern // the mark
}

func (m metaspace) split(p piece, track bool, f func(p piece)) {
	first := p.from(0) == 0
	p = replace{what: pattern.Literal(" "), with: m.mark, text: " "}.apply(p, track)
	if (m.scheme == "always" || m.scheme == "first" && first) && !strings.HasPrefix(p.s, m.mark) {
		p = prepend(m.mark).apply(p, track)
	}
	if !m.cut {
		f(p)
		return
	}
	byPattern{what: m.what, how: "MergedWithNext"}.split(p, track, f)
}
