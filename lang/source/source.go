// Package source holds the text of a .mt file and the spans that point into it.
//
// A Span is a half-open range of byte offsets. Every later stage (syntax tree,
// typed graph, schedule) carries spans, so that any error or task can be traced
// to the text it came from. The package does no parsing.
package source

import (
	"fmt"
	"sort"
	"unicode/utf8"
)

// File is one source text. Text is never modified after New.
type File struct {
	Name  string // as the user gave it, relative paths kept
	Text  []byte
	lines []int // byte offset of the start of each line
}

// New indexes the lines of text.
func New(name string, text []byte) *File {
	f := &File{Name: name, Text: text, lines: []int{0}}
	for i, c := range text {
		if c == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
	return f
}

// Position returns the 1-based line and column of a byte offset; columns count runes.
func (f *File) Position(off int) (line, col int) {
	off = max(0, min(off, len(f.Text)))
	line = sort.Search(len(f.lines), func(i int) bool { return f.lines[i] > off })
	return line, utf8.RuneCount(f.Text[f.lines[line-1]:off]) + 1
}

// Line returns the text of a 1-based line without its line end.
func (f *File) Line(n int) string {
	if n < 1 || n > len(f.lines) {
		return ""
	}
	start, end := f.lines[n-1], len(f.Text)
	if n < len(f.lines) {
		end = f.lines[n] - 1
	}
	if end > start && f.Text[end-1] == '\r' {
		end--
	}
	return string(f.Text[start:end])
}

// Lines returns the number of lines.
func (f *File) Lines() int { return len(f.lines) }

// Span is a half-open byte range [Start, End) of a file. The zero Span points nowhere.
type Span struct {
	File       *File
	Start, End int
}

// Valid reports whether the span points into a file.
func (s Span) Valid() bool { return s.File != nil }

// To returns the span from the start of s to the end of t, which must be in the same file.
func (s Span) To(t Span) Span {
	if !s.Valid() {
		return t
	}
	if !t.Valid() || t.File != s.File {
		return s
	}
	return Span{s.File, min(s.Start, t.Start), max(s.End, t.End)}
}

// Text returns the text the span covers.
func (s Span) Text() string {
	if !s.Valid() {
		return ""
	}
	return string(s.File.Text[s.Start:s.End])
}

// String is "file:line:col" of the start, or "" for the zero Span.
func (s Span) String() string {
	if !s.Valid() {
		return ""
	}
	line, col := s.File.Position(s.Start)
	return fmt.Sprintf("%s:%d:%d", s.File.Name, line, col)
}

// Line is "file:line" of the start, or "" for the zero Span.
func (s Span) Line() string {
	if !s.Valid() {
		return ""
	}
	line, _ := s.File.Position(s.Start)
	return fmt.Sprintf("%s:%d", s.File.Name, line)
}
