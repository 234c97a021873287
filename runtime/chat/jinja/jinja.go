// Package jinja renders the templates with which models write conversations: the Jinja
// language as far as such templates use it, with the values of Python. It knows expressions,
// `for` (with filter, else, break, continue), `if`, `set`, `macro`, `call`, `filter`, `raw` and
// `generation`, and no file, import or inheritance. What it does not know is an error, so that
// no template is rendered in another way than its author meant.
//
// Blocks are trimmed as the templates expect (trim_blocks and lstrip_blocks).
package jinja

import (
	"fmt"
	"strings"
)

// Template is a compiled template; it may be used from several goroutines.
type Template struct {
	body []stmt
	// Marked says that it has {% generation %} blocks.
	Marked bool
}

// Error is a fault of a template, at a line of it.
type Error struct {
	Line int
	Why  string
	// Raised says that the template itself refused, with raise_exception.
	Raised bool
}

func (e *Error) Error() string {
	if e.Raised {
		return e.Why
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Why)
}

// Span is a part of a rendered text, in bytes.
type Span struct{ From, To int }

// Compile reads a template.
func Compile(text string) (t *Template, err error) {
	defer catch(&err)
	segs := scan(text)
	p := &parser{segs: segs}
	body, end := p.block()
	if end != "" {
		p.fail("`%s` without its beginning", end)
	}
	return &Template{body: body, Marked: p.marked}, nil
}

// Render gives the text and the parts of it that {% generation %} blocks made.
func (t *Template) Render(vars map[string]any) (text string, spans []Span, err error) {
	defer catch(&err)
	r := &renderer{out: &strings.Builder{}}
	global := newScope(nil)
	for k, v := range globals {
		global.vars[k] = v
	}
	for k, v := range vars {
		global.vars[k] = v
	}
	r.scope = newScope(global)
	r.run(t.body)
	return r.out.String(), r.spans, nil
}

// catch turns a fault that was thrown into an error; other panics pass.
func catch(err *error) {
	switch e := recover().(type) {
	case nil:
	case *Error:
		*err = e
	default:
		panic(e)
	}
}

func throw(line int, format string, args ...any) {
	panic(&Error{Line: line, Why: fmt.Sprintf(format, args...)})
}
