package diag

import (
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/megatrain/mtc/lang/source"
)

// writeText prints a diagnostic with the source lines it points at, the primary span under
// carets, others under dashes, and the text of each span beside or below it.
func writeText(w io.Writer, d *Diagnostic) {
	fmt.Fprintf(w, "%s[%s]: %s\n", d.Severity, d.Code, d.Message)
	excerpts := excerptsOf(d)
	width := 1
	for _, e := range excerpts {
		width = max(width, len(fmt.Sprint(e.lines[len(e.lines)-1])))
	}
	pad := strings.Repeat(" ", width)
	for i, e := range excerpts {
		arrow := "-->"
		if i > 0 {
			arrow = ":::"
		}
		fmt.Fprintf(w, "%s%s %s\n", pad, arrow, e.marks[0].span)
		fmt.Fprintf(w, "%s |\n", pad)
		e.write(w, width)
	}
	if len(excerpts) > 0 && len(d.Notes)+len(d.Help) > 0 {
		fmt.Fprintf(w, "%s |\n", pad)
	}
	writeFacts(w, pad, "note", d.Notes)
	writeFacts(w, pad, "help", d.Help)
}

// writeFacts prints notes or help; further lines of one stand under its first.
func writeFacts(w io.Writer, pad, kind string, facts []string) {
	for _, f := range facts {
		fmt.Fprintf(w, "%s%s: %s\n", pad, kind, strings.ReplaceAll(f, "\n", "\n"+pad+strings.Repeat(" ", len(kind)+2)))
	}
}

// excerpt is the part of one file that a diagnostic shows.
type excerpt struct {
	file  *source.File
	marks []mark // the primary span first, if it is in this file
	lines []int  // to print, ascending
}

// mark is a span on its first line.
type mark struct {
	span     source.Span
	text     string
	primary  bool
	line     int
	from, to int // byte offsets within the line
}

// excerptsOf groups the spans by file and chooses the lines to print: those with a span,
// the one before the primary span, and single lines between.
func excerptsOf(d *Diagnostic) []*excerpt {
	var out []*excerpt
	byFile := map[*source.File]*excerpt{}
	for i, l := range d.Labels {
		f := l.Span.File
		if f == nil {
			continue
		}
		e := byFile[f]
		if e == nil {
			e = &excerpt{file: f}
			byFile[f] = e
			out = append(out, e)
		}
		e.marks = append(e.marks, newMark(l, i == 0))
	}
	for _, e := range out {
		e.chooseLines()
	}
	return out
}

func newMark(l Label, primary bool) mark {
	f := l.Span.File
	line, _ := f.Position(l.Span.Start)
	text := f.Line(line)
	start := lineStart(f, l.Span.Start)
	m := mark{span: l.Span, text: l.Text, primary: primary, line: line}
	m.from = min(max(0, l.Span.Start-start), len(text))
	m.to = min(max(m.from, l.Span.End-start), len(text))
	return m
}

// lineStart is the offset of the first byte of the line that holds off.
func lineStart(f *source.File, off int) int {
	off = max(0, min(off, len(f.Text)))
	for off > 0 && f.Text[off-1] != '\n' {
		off--
	}
	return off
}

func (e *excerpt) chooseLines() {
	show := map[int]bool{}
	for _, m := range e.marks {
		show[m.line] = true
		if m.primary && strings.TrimSpace(e.file.Line(m.line-1)) != "" {
			show[m.line-1] = true
		}
	}
	for n := range show {
		if show[n+2] {
			show[n+1] = true
		}
	}
	for n := range show {
		if n > 0 {
			e.lines = append(e.lines, n)
		}
	}
	sort.Ints(e.lines)
}

func (e *excerpt) write(w io.Writer, width int) {
	pad := strings.Repeat(" ", width)
	for i, n := range e.lines {
		if i > 0 && e.lines[i-1] != n-1 {
			fmt.Fprintf(w, "%s...\n", strings.Repeat(" ", max(0, width-2)))
		}
		var marks []mark
		for _, m := range e.marks {
			if m.line == n {
				marks = append(marks, m)
			}
		}
		v := newView(e.file.Line(n), marks, maxWidth-width-len(" | "))
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%*d | %s", width, n, v.text), " "))
		for _, row := range v.rows() {
			fmt.Fprintf(w, "%s | %s\n", pad, strings.TrimRight(row, " "))
		}
	}
}
