// Package format prints a .mt file in its one canonical layout.
//
// Indentation is two spaces. Spaces between tokens and blank lines (at most one) are fixed;
// `=` is aligned in train, weights and preset lists, the braces of presets that follow each other
// too. A line of more than Width columns is broken after a comma or an operator, and goes
// on under the first character after its bracket; breaks that the author made there are kept. A body
// with one statement stays on its line when it was written so. Comments stay
// where they are. The result parses to the same tree as the text.
package format

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/parser"
	"github.com/megatrain/mtc/lang/source"
)

// Width is the number of columns after which lines are broken.
const Width = 125

// ErrTooLarge is the error of a text whose indentation makes it larger than a file may be.
var ErrTooLarge = errors.New("the formatted text would be too large")

// Source returns the canonical text of a file. A file with syntax errors is not formatted;
// the error is then a *diag.List.
func Source(f *source.File) ([]byte, error) {
	var l diag.List
	tree := parser.Parse(f, &l)
	if err := l.Err(); err != nil {
		return nil, err
	}
	lines, comments := parser.Outline(f, &diag.List{})
	p := newPrinter(f, comments)
	p.lines(lines, 0, topLevel, len(f.Text)+1)
	out := p.bytes()

	if len(out) > parser.MaxBytes {
		return nil, fmt.Errorf("%s: %w: %d bytes of at most %d", f.Name, ErrTooLarge, len(out), parser.MaxBytes)
	}

	// A layout that changed the meaning would be a silent loss of someone's work.
	again := parser.Parse(source.New(f.Name, out), &l)
	if err := l.Err(); err != nil {
		return nil, fmt.Errorf("the formatted text of %s does not parse: %w", f.Name, err)
	}
	if !Same(tree, again) {
		return nil, fmt.Errorf("the formatted text of %s means something else", f.Name)
	}
	return out, nil
}

// Same reports whether two trees are equal but for where their nodes stand.
func Same(a, b *ast.File) bool {
	var x, y bytes.Buffer
	ast.Dump(&x, a, false)
	ast.Dump(&y, b, false)
	return bytes.Equal(x.Bytes(), y.Bytes())
}
