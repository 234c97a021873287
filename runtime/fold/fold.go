// Package fold keeps text for people to the width of a terminal: what processes say besides their results, and
// paragraphs of help. It changes no word, and knows of errors no more than how their lines begin.
package fold

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"sync"
)

// Width is what errors, notes, warnings and help keep to.
const Width = 80

// Writer is where a process writes its errors, notes and warnings: a line of more than Width is broken between
// words, and goes on below what it says. A text in backquotes, which is there to be copied, stays whole where a line
// has room for it; excerpts of a file stay as they are. It holds nothing back: what is written is there at once.
type Writer struct {
	W io.Writer
	// Whole says that lines stay as they are, since a program reads them; nil: they never do.
	Whole func() bool
	mu    sync.Mutex
	open  bool // the last text ended within a line
}

func (f *Writer) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b bytes.Buffer
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		if f.open || !ended || f.Whole != nil && f.Whole() {
			b.Write(line)
		} else {
			b.WriteString(fold(string(line)))
		}
		if f.open = !ended; ended {
			b.WriteByte('\n')
		}
		rest = after
	}
	if _, err := f.W.Write(b.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

var (
	excerpts = regexp.MustCompile(`^ *\d* *\| |^\t|\r`)
	heads    = regexp.MustCompile(`^ *(?:(?:note|help|warning): )?`)
)

// fold breaks a line; further ones stand below its text, or two columns in.
func fold(line string) string {
	if columns(line) <= Width || excerpts.MatchString(line) {
		return line
	}
	head := heads.FindString(line)
	indent := len(head)
	if strings.TrimLeft(head, " ") == "" {
		indent += 2
	}
	indent = min(indent, Width/2)
	var b strings.Builder
	b.WriteString(head)
	at := len(head)
	for i, w := range unbroken(strings.Fields(line[len(head):]), Width-indent) {
		switch n := columns(w); {
		case i == 0:
			at += n
		case at+1+n <= Width:
			b.WriteByte(' ')
			at += 1 + n
		default:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent + n
		}
		b.WriteString(w)
	}
	return b.String()
}

// unbroken joins the words of a text in backquotes to one, of at most room columns.
func unbroken(words []string, room int) (out []string) {
	for i := 0; i < len(words); i++ {
		n := 1
		for quoted := words[i]; strings.Count(quoted, "`")%2 == 1 && i+n < len(words); n++ {
			quoted += " " + words[i+n]
			if strings.Count(quoted, "`")%2 == 0 && columns(quoted) <= room {
				words[i+n] = quoted
				i += n
				break
			}
		}
		out = append(out, words[i])
	}
	return out
}

// columns is what a terminal takes for a text: two of them for the scripts and signs of East Asia.
func columns(s string) (n int) {
	for _, r := range s {
		if n++; r >= 0x1100 && r < 0x1160 || r >= 0x2e80 {
			n++
		}
	}
	return n
}

// Wrap breaks a text between words into lines of at most width columns; a longer word gets a
// line of its own. Every run of spaces and line ends is one space.
func Wrap(text string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		if n := len(lines); n > 0 && columns(lines[n-1])+1+columns(word) <= width {
			lines[n-1] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}
