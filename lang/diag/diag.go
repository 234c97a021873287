// Package diag holds diagnostics: what is wrong in a source text, where, and what to do.
//
// Messages are lower case, in plain words, without a full stop, and never blame. A
// diagnostic has a stable code (MT01 syntax, MT02 names, MT03 shapes and types, MT04
// memory, MT05 device, MT06 data, MT07 the command line; MT00 internal), one primary span, at most two
// more, and help that says what to write. Rendering is in text.go and json.go.
package diag

import (
	"fmt"
	"sort"

	"github.com/megatrain/mtc/lang/source"
)

// Severity orders diagnostics by weight.
type Severity int

// The severities.
const (
	Error Severity = iota
	Warning
)

func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Label is a span with a short text beside it.
type Label struct {
	Span source.Span
	Text string
}

// Diagnostic is one finding. Labels[0] is the primary span.
type Diagnostic struct {
	Code     string
	Severity Severity
	Message  string
	Path     string // the file meant, where no text of it is at hand; "" with spans
	Labels   []Label
	Notes    []string
	Help     []string
}

// Span returns the primary span.
func (d *Diagnostic) Span() source.Span {
	if len(d.Labels) == 0 {
		return source.Span{}
	}
	return d.Labels[0].Span
}

// Mark sets the text beside the primary span.
func (d *Diagnostic) Mark(format string, args ...any) *Diagnostic {
	if len(d.Labels) > 0 {
		d.Labels[0].Text = fmt.Sprintf(format, args...)
	}
	return d
}

// Also adds a secondary span; the third and later ones are dropped.
func (d *Diagnostic) Also(span source.Span, format string, args ...any) *Diagnostic {
	if span.Valid() && len(d.Labels) < 3 {
		d.Labels = append(d.Labels, Label{span, fmt.Sprintf(format, args...)})
	}
	return d
}

// Note adds a fact that explains the finding.
func (d *Diagnostic) Note(format string, args ...any) *Diagnostic {
	d.Notes = append(d.Notes, fmt.Sprintf(format, args...))
	return d
}

// Hint adds a line of help: what to write or run.
func (d *Diagnostic) Hint(format string, args ...any) *Diagnostic {
	d.Help = append(d.Help, fmt.Sprintf(format, args...))
	return d
}

// List collects diagnostics.
type List struct {
	items []*Diagnostic
}

// Errorf adds an error and returns it for more detail.
func (l *List) Errorf(code string, span source.Span, format string, args ...any) *Diagnostic {
	return l.add(Error, code, span, format, args...)
}

// Warnf adds a warning and returns it for more detail.
func (l *List) Warnf(code string, span source.Span, format string, args ...any) *Diagnostic {
	return l.add(Warning, code, span, format, args...)
}

func (l *List) add(sev Severity, code string, span source.Span, format string, args ...any) *Diagnostic {
	d := &Diagnostic{Code: code, Severity: sev, Message: fmt.Sprintf(format, args...), Labels: []Label{{Span: span}}}
	l.items = append(l.items, d)
	return d
}

// Add adds a finding.
func (l *List) Add(d *Diagnostic) { l.items = append(l.items, d) }

// Append adds the findings of another list.
func (l *List) Append(other *List) { l.items = append(l.items, other.items...) }

// HasErrors reports whether any item is an error.
func (l *List) HasErrors() bool {
	for _, d := range l.items {
		if d.Severity == Error {
			return true
		}
	}
	return false
}

// Len returns the number of items.
func (l *List) Len() int { return len(l.items) }

// Sorted returns the items in source order, files in order of first appearance, one per cause
// (same code, span and message).
func (l *List) Sorted() []*Diagnostic {
	order := map[*source.File]int{}
	for _, d := range l.items {
		if f := d.Span().File; f != nil {
			if _, ok := order[f]; !ok {
				order[f] = len(order)
			}
		}
	}
	out := append([]*Diagnostic(nil), l.items...)
	sort.SliceStable(out, func(i, j int) bool {
		a, b := out[i].Span(), out[j].Span()
		if a.File != b.File {
			return order[a.File] < order[b.File]
		}
		return a.Start < b.Start
	})
	type key struct {
		code, msg string
		span      source.Span
	}
	seen := map[key]bool{}
	uniq := out[:0]
	for _, d := range out {
		k := key{d.Code, d.Message, d.Span()}
		if !seen[k] {
			seen[k] = true
			uniq = append(uniq, d)
		}
	}
	return uniq
}

// Err returns l as an error when it holds an error, else nil.
func (l *List) Err() error {
	if l.HasErrors() {
		return l
	}
	return nil
}

// Error implements error with the first message and a count.
func (l *List) Error() string {
	s := l.Sorted()
	if len(s) == 0 {
		return "no diagnostics"
	}
	msg := s[0].Span().String() + ": " + s[0].Message
	if len(s) > 1 {
		msg += fmt.Sprintf(" (and %d more)", len(s)-1)
	}
	return msg
}
