package format

import (
	"bytes"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/parser"
	"github.com/megatrain/mtc/lang/source"
)

// context says what the lines of a body are.
type context int

const (
	topLevel context = iota
	modelItems
	statements
	listing // train fields, weights entries, preset values: `=` is aligned
)

// printer lays out lines. Comments are taken in order as the text around them is printed.
type printer struct {
	file     *source.File
	comments []ast.Comment
	next     int // first comment not yet printed
	out      []row
	starts   []int // offsets of the lines
	lastLine int   // source line on which the last thing printed ends, 0 at a body's start
}

// row is one line of output, or several joined by line breaks when it was broken.
type row struct {
	indent  int
	text    string // without the first line's indentation
	comment string // at the end
	blank   bool   // a blank line before
}

// newPrinter indexes the lines of a file: asking it for a column, as Position does, costs the
// line's length.
func newPrinter(f *source.File, comments []ast.Comment) *printer {
	p := &printer{file: f, comments: comments, starts: []int{0}}
	for i, c := range f.Text {
		if c == '\n' {
			p.starts = append(p.starts, i+1)
		}
	}
	return p
}

// lineOf is the source line of an offset, from 1.
func (p *printer) lineOf(off int) int {
	return sort.Search(len(p.starts), func(i int) bool { return p.starts[i] > off })
}

// emit adds a row for what stands at [start, end) in the source.
func (p *printer) emit(r row, start, end int) {
	r.blank = r.blank || p.lastLine > 0 && p.lineOf(start) > p.lastLine+1
	r.blank = r.blank && len(p.out) > 0
	p.out = append(p.out, r)
	p.lastLine = p.lineOf(end)
}

// ownComments prints the comments before off on lines of their own.
func (p *printer) ownComments(off, indent int) {
	for p.next < len(p.comments) && p.comments[p.next].Span.Start < off {
		c := p.comments[p.next]
		p.next++
		p.emit(row{indent: indent, text: c.Text}, c.Span.Start, c.Span.Start)
	}
}

// trailing takes the comment that follows `after` on its source line, if it stands before limit.
func (p *printer) trailing(after, limit int) string {
	if p.next >= len(p.comments) {
		return ""
	}
	c := p.comments[p.next]
	if c.Span.Start < after || c.Span.Start >= limit || p.lineOf(c.Span.Start) != p.lineOf(after) {
		return ""
	}
	p.next++
	return c.Text
}

// commentIn reports whether a comment stands in [start, end).
func (p *printer) commentIn(start, end int) bool {
	for i := p.next; i < len(p.comments) && p.comments[i].Span.Start < end; i++ {
		if p.comments[i].Span.Start >= start {
			return true
		}
	}
	return false
}

// lines prints the lines of a body that ends at end, and the comments in it.
func (p *printer) lines(lines []parser.Line, indent int, ctx context, end int) {
	pads := p.alignment(lines, ctx)
	for i, l := range lines {
		limit := end
		if i+1 < len(lines) {
			limit = lines[i+1][0].Start
		}
		p.ownComments(l[0].Start, indent)
		p.line(l, indent, ctx, pads[i], limit)
	}
	p.ownComments(end, indent)
}

// line prints one declaration, item or statement. pad is the width of what stands before its
// `=` (or, of a preset, before its `{`); limit is where the next line starts.
func (p *printer) line(l parser.Line, indent int, ctx context, pad, limit int) {
	if p.fitsOnLine(l, indent, pad) {
		text := p.flat(l, indent, pad)
		end := l[len(l)-1].End
		p.emit(row{indent: indent, text: text, comment: p.trailing(end, limit), blank: p.apart(ctx, false)}, l[0].Start, end)
		return
	}
	start := l[0].Start
	head := parser.Line{}
	text := ""
	blank := p.apart(ctx, true)
	for i := range l {
		t := &l[i]
		if t.Kind != parser.BodyToken {
			head = append(head, *t)
			continue
		}
		text = p.join(text, head, indent, 0)
		first := t.Body.Close
		if len(t.Body.Lines) > 0 {
			first = t.Body.Lines[0][0].Start
		}
		comment := p.trailing(t.Start+1, first)
		p.emit(row{indent: indent, text: text + " {", comment: comment, blank: blank}, start, t.Start)
		blank = false
		p.lastLine = 0
		inner := t.Body.Lines
		if ctx == modelItems && l[0].Text == "preset" {
			inner = onePerLine(inner)
		}
		p.lines(inner, indent+2, bodyContext(l, ctx), t.Body.Close)
		p.lastLine = 0
		start = t.Body.Close
		text, head = "}", head[:0]
	}
	end := l[len(l)-1].End
	p.emit(row{indent: indent, text: text, comment: p.trailing(end, limit)}, start, end)
}

// apart reports whether a blank line must stand before a line: at the top level, before and
// after what is printed with an open body. A comment above stays with what it stands over.
func (p *printer) apart(ctx context, opened bool) bool {
	if ctx != topLevel || len(p.out) == 0 {
		return false
	}
	last := p.out[len(p.out)-1].text
	return !strings.HasPrefix(last, "//") && (opened || last == "}")
}

func bodyContext(l parser.Line, ctx context) context {
	switch {
	case ctx == listing:
		return listing
	case ctx == topLevel && l[0].Text == "model":
		return modelItems
	case ctx == topLevel, ctx == modelItems && (l[0].Text == "weights" || l[0].Text == "preset"):
		return listing
	}
	return statements
}

// fitsOnLine reports whether a line is printed without opening its bodies: it has none, or each
// was written on one line with at most one statement, without comments, and all fit the width.
func (p *printer) fitsOnLine(l parser.Line, indent, pad int) bool {
	bodies := false
	for i := range l {
		b := l[i].Body
		if b == nil {
			continue
		}
		bodies = true
		if len(b.Lines) > 1 || p.lineOf(b.Open) != p.lineOf(b.Close) {
			return false
		}
		for _, in := range b.Lines {
			for j := range in {
				if in[j].Body != nil {
					return false
				}
			}
		}
	}
	if !bodies {
		return true
	}
	start, end := l[0].Start, l[len(l)-1].End
	if p.commentIn(start, end) || p.lineOf(start) != p.lineOf(end) {
		return false
	}
	return indent+utf8.RuneCountInString(p.flat(l, indent, pad)) <= Width
}

// flat prints a line with its bodies on it, broken only inside brackets.
func (p *printer) flat(l parser.Line, indent, pad int) string {
	var text string
	head := parser.Line{}
	for i := range l {
		t := &l[i]
		if t.Kind != parser.BodyToken {
			head = append(head, *t)
			continue
		}
		text = p.join(text, head, indent, 0)
		head = head[:0]
		if len(l) == 3 && pad > 0 {
			text += strings.Repeat(" ", max(0, pad-utf8.RuneCountInString(text)))
		}
		text += " {"
		if len(t.Body.Lines) > 0 {
			text = p.join(text, stripComma(t.Body.Lines[0]), indent, 0)
		}
		text += " }"
	}
	if len(head) > 0 {
		text = p.join(text, stripComma(head), indent, pad)
	}
	return text
}

// join adds the tokens to a text that stands on a line with an indent.
func (p *printer) join(text string, l parser.Line, indent, pad int) string {
	if text != "" {
		text += " "
	}
	last := text[strings.LastIndexByte(text, '\n')+1:]
	used := utf8.RuneCountInString(last)
	if len(last) < len(text) {
		used -= indent // a broken line has its indentation in it
	}
	return text + p.wrap(l, indent, used, pad)
}

// stripComma drops a comma at the end of a line of a preset.
func stripComma(l parser.Line) parser.Line {
	if n := len(l); n > 1 && l[n-1].Text == "," {
		return l[:n-1]
	}
	return l
}

// onePerLine splits the lines of a preset at their commas.
func onePerLine(lines []parser.Line) []parser.Line {
	var out []parser.Line
	for _, l := range lines {
		depth, start := 0, 0
		for i := range l {
			switch l[i].Text {
			case "(", "[":
				depth++
			case ")", "]":
				depth--
			case ",":
				if depth == 0 {
					out = append(out, l[start:i])
					start = i + 1
				}
			}
		}
		if start < len(l) {
			out = append(out, l[start:])
		}
	}
	return out
}

// physical is one line of the output.
type physical struct {
	code, comment string
	blank         bool // a blank line before
}

// bytes joins the rows; comments at the ends of lines that follow each other are aligned.
func (p *printer) bytes() []byte {
	var lines []physical
	for _, r := range p.out {
		text := strings.Repeat(" ", r.indent) + r.text
		if r.comment != "" {
			text += commentMark + r.comment
		}
		for i, l := range strings.Split(text, "\n") {
			code, comment, _ := strings.Cut(l, commentMark)
			lines = append(lines, physical{code, comment, r.blank && i == 0})
		}
	}
	var b bytes.Buffer
	for i := 0; i < len(lines); {
		j, width := i, 0
		for j < len(lines) && lines[j].comment != "" && (j == i || !lines[j].blank) {
			width = max(width, utf8.RuneCountInString(lines[j].code))
			j++
		}
		j = max(j, i+1)
		for _, l := range lines[i:j] {
			if l.blank {
				b.WriteByte('\n')
			}
			b.WriteString(l.code)
			if l.comment != "" {
				b.WriteString(strings.Repeat(" ", width-utf8.RuneCountInString(l.code)+2) + l.comment)
			}
			b.WriteByte('\n')
		}
		i = j
	}
	return b.Bytes()
}
