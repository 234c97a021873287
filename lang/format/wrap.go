package format

import (
	"strings"
	"unicode/utf8"

	"github.com/megatrain/mtc/lang/parser"
)

// atom is a token with what the line breaking needs to know.
type atom struct {
	text    string
	space   bool   // a space before it, unless it starts a line
	depth   int    // open brackets after it
	may     bool   // a line may break after it
	must    bool   // a line breaks after it
	comment string // at the end of its line
	own     []string
}

// commentMark stands before a comment inside a broken line, until bytes aligns it. No text has
// a NUL byte.
const commentMark = "\x00"

// wrap prints the tokens of a line without bodies: first on a line that is indented and has
// used columns already. When it grows over Width it is broken at the outermost bracket that has
// a place for it on the line, as late as possible, and goes on under the first character after
// the innermost open bracket. With pad > 0 what stands before the `=` is padded to it.
func (p *printer) wrap(l parser.Line, indent, used, pad int) string {
	atoms := p.atoms(l)
	if pad > 0 {
		padEquals(atoms, pad)
	}
	var b strings.Builder
	var open []int // columns after the open brackets
	for start := 0; start < len(atoms); {
		col := indent + used
		if start > 0 {
			col = indent
			if len(open) > 0 {
				col = open[len(open)-1]
			}
			for _, c := range atoms[start].own {
				b.WriteString("\n" + strings.Repeat(" ", col) + c)
			}
			b.WriteString("\n" + strings.Repeat(" ", col))
		}
		end := lineEnd(atoms[start:], col) + start
		for i := start; i < end; i++ {
			a := &atoms[i]
			if a.space && i > start {
				b.WriteByte(' ')
				col++
			}
			b.WriteString(a.text)
			col += utf8.RuneCountInString(a.text)
			switch a.text {
			case "(", "[":
				open = append(open, col)
			case ")", "]":
				open = open[:max(0, len(open)-1)]
			}
		}
		if c := atoms[end-1].comment; c != "" {
			b.WriteString(commentMark + c)
		}
		start = end
	}
	return b.String()
}

// lineEnd returns how many atoms the next line takes.
func lineEnd(atoms []atom, col int) int {
	best := -1
	for i := range atoms {
		a := &atoms[i]
		if a.space && i > 0 {
			col++
		}
		col += utf8.RuneCountInString(a.text)
		if col > Width && best >= 0 {
			return best + 1
		}
		if a.must {
			return i + 1
		}
		if a.may && (best < 0 || a.depth <= atoms[best].depth) {
			best = i
		}
	}
	return len(atoms)
}

// atoms prepares the tokens of a line: spaces, places to break, comments inside.
func (p *printer) atoms(l parser.Line) []atom {
	out := make([]atom, 0, len(l))
	depth := 0
	for i := range l {
		t := &l[i]
		switch t.Text {
		case "(", "[":
			depth++
		case ")", "]":
			depth--
		}
		if t.Text == "," && i+1 < len(l) && (l[i+1].Text == ")" || l[i+1].Text == "]") {
			continue // a comma before the closing bracket
		}
		a := atom{text: t.Text, depth: depth}
		if i > 0 {
			p.breakBefore(out, &a, &l[i-1], t)
			a.space = spaceBetween(&l[i-1], t)
		}
		a.may = depth > 0 && (t.Text == "," || t.Kind == parser.OpToken)
		out = append(out, a)
	}
	return out
}

// breakBefore marks the last atom to end its line when the author broke it there after a comma
// or an operator, or when a comment stands between it and the token t.
func (p *printer) breakBefore(out []atom, a *atom, prev, t *parser.Token) {
	last := &out[len(out)-1]
	for p.next < len(p.comments) && p.comments[p.next].Span.Start < t.Start {
		c := p.comments[p.next]
		if c.Span.Start < prev.End {
			break
		}
		p.next++
		if last.comment == "" && len(a.own) == 0 && p.lineOf(c.Span.Start) == p.lineOf(prev.End) {
			last.comment = c.Text
		} else {
			a.own = append(a.own, c.Text)
		}
		last.must = true
	}
	if last.may && p.lineOf(prev.End) != p.lineOf(t.Start) && t.Text != ")" && t.Text != "]" {
		last.must = true
	}
}

// padEquals widens the space before the first `=`.
func padEquals(atoms []atom, pad int) {
	width := 0
	for i := range atoms {
		a := &atoms[i]
		if a.text == "=" {
			a.text = strings.Repeat(" ", max(0, pad-width)) + "="
			return
		}
		if a.space && i > 0 {
			width++
		}
		width += utf8.RuneCountInString(a.text)
	}
}

// spaceBetween reports whether a space stands between two tokens.
func spaceBetween(a, b *parser.Token) bool {
	switch b.Text {
	case ")", "]", ",", ":":
		return false
	case "(":
		return !(a.Kind == parser.NameToken || a.Text == "forward" || a.Text == "(" || a.Text == "[" || a.Text == "-")
	}
	if b.Kind == parser.PunctToken && (b.Text == "." || b.Text == "[" && a.Kind == parser.NameToken) {
		return false
	}
	switch a.Text {
	case "(", "[":
		return false
	case ".":
		return a.Kind != parser.PunctToken
	case "-":
		return a.Kind != parser.PrefixToken
	}
	return true
}
