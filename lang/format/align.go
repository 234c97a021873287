package format

import (
	"unicode/utf8"

	"github.com/megatrain/mtc/lang/parser"
)

// alignment returns for each line the width to which what stands before its `=` is padded,
// 0 for none. In a listing, lines that follow each other without a blank line, each with one
// name before its `=`, form a group; so do presets on one line in a model, up to their brace.
func (p *printer) alignment(lines []parser.Line, ctx context) []int {
	pads := make([]int, len(lines))
	start, width := 0, 0
	flush := func(end int) {
		for i := start; i < end; i++ {
			pads[i] = width
		}
		start, width = end, 0
	}
	for i, l := range lines {
		w := p.leftWidth(l, ctx)
		if i > 0 && p.blankBetween(lines[i-1], l) || w == 0 {
			flush(i)
		}
		if w == 0 {
			start = i + 1
			continue
		}
		width = max(width, w)
	}
	flush(len(lines))
	return pads
}

// leftWidth is the width of what stands before the `=` or `{` that is aligned, 0 when the line
// is not part of a group.
func (p *printer) leftWidth(l parser.Line, ctx context) int {
	if p.commentIn(l[0].Start, l[len(l)-1].End) {
		return 0
	}
	switch {
	case ctx == modelItems && l[0].Text == "preset" && len(l) == 3 && p.fitsOnLine(l, 2, 0):
		return len(l[0].Text) + 1 + len(l[1].Text)
	case ctx == listing:
		for i := range l {
			switch l[i].Text {
			case "=":
				return utf8.RuneCountInString(p.wrap(l[:i], 0, 0, 0))
			case ",", "(":
				return 0
			}
			if l[i].Body != nil || l[i].Kind == parser.KeywordToken {
				return 0
			}
		}
	}
	return 0
}

// blankBetween reports whether the author left a line free between two lines, comments aside.
func (p *printer) blankBetween(a, b parser.Line) bool {
	last := p.lineOf(a[len(a)-1].End)
	for _, c := range p.comments {
		if c.Own && c.Span.Start > a[0].Start && c.Span.Start < b[0].Start {
			if n := p.lineOf(c.Span.Start); n == last+1 {
				last = n
			}
		}
	}
	return p.lineOf(b[0].Start) > last+1
}
