// Package parser turns the text of a .mt file into a syntax tree (lang/ast).
//
// The work is done in stages, so that one slip in the text costs one error and never the
// file: scan (lexer.go) makes tokens and refuses what is too large or nested too deep;
// layout (layout.go) decides which line breaks end a statement and reports unclosed brackets;
// classify (classify.go) types each identifier by the token that follows; cut (cut.go)
// splits the tokens into nested lines; parse (walk.go) hands each line's head to a
// participle grammar (grammar.go); build (build.go, expr.go) makes the tree. Every stage
// reports to a diag.List and goes on. No name is looked up and no constant evaluated here.
package parser

import (
	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
)

// The limits that keep the cost of any input small.
const (
	MaxBytes  = 256 << 10 // size of a file
	MaxDepth  = 200       // nesting of brackets, braces, conditions and signs
	MaxChain  = 1000      // operators of one expression without brackets
	maxErrors = 50        // findings reported for a file
)

// Parse reads a file. What is wrong goes to l, several findings a file, in source order. The
// tree is never nil; with errors it holds what could be read.
func Parse(f *source.File, l *diag.List) *ast.File {
	p := &parser{file: f, diags: l}
	out := &ast.File{Source: f}
	toks, ok := p.prepare()
	out.Comments = p.comments
	if ok {
		p.decls(out, p.cut(toks))
	}
	return out
}

// ParseExpr reads one expression, such as the value of `--set D=1024`. It is nil with errors.
func ParseExpr(f *source.File, l *diag.List) ast.Expr {
	p := &parser{file: f, diags: l}
	toks, ok := p.single("a value")
	if !ok {
		return nil
	}
	p.place = inExpr
	g := parseLine(p, exprParser, toks)
	if g == nil || p.failed {
		return nil
	}
	return p.expr(g)
}

// ParseField reads one field of a train block, such as `batch = 524288 tokens`. It is nil with errors.
func ParseField(f *source.File, l *diag.List) *ast.Field {
	p := &parser{file: f, diags: l}
	toks, ok := p.single("a field such as `lr = 1e-3`")
	if !ok {
		return nil
	}
	p.place = inTrain
	g := parseLine(p, fieldParser, toks)
	if g == nil || p.failed {
		return nil
	}
	return p.field(g)
}

// place is what kind of line is being parsed, for messages.
type place int

const (
	inFile place = iota
	inModel
	inPreset
	inTrain
	inWeights
	inBlock
	inExpr
)

// parser holds what the stages share.
type parser struct {
	file     *source.File
	diags    *diag.List
	comments []ast.Comment
	bodies   map[int]*group // by the offset of their open brace
	place    place
	errors   int
	failed   bool // an error was reported
}

// prepare runs the stages before cut. It is false when the file is refused as a whole.
func (p *parser) prepare() ([]token, bool) {
	toks, ok := p.scan()
	if !ok {
		return nil, false
	}
	toks = p.layout(toks)
	classify(toks)
	return toks, true
}

// single prepares a text that must be one line of one thing.
func (p *parser) single(want string) ([]token, bool) {
	toks, ok := p.prepare()
	if !ok {
		return nil, false
	}
	lines := p.cut(toks)
	switch {
	case p.failed:
		return nil, false
	case len(lines) == 0:
		p.errorf("MT0101", p.span(0, len(p.file.Text)), "expected %s, found nothing", want)
		return nil, false
	case len(lines) > 1:
		p.errorf("MT0101", lines[1].toks[0].span(p.file), "expected the end of the text after %s", want).
			Hint("one at a time; on the command line each has its own `--set`")
		return nil, false
	}
	return lines[0].toks, true
}

func (p *parser) span(start, end int) source.Span {
	return source.Span{File: p.file, Start: start, End: end}
}

// errorf reports an error, until there are too many. The result is never nil.
func (p *parser) errorf(code string, span source.Span, format string, args ...any) *diag.Diagnostic {
	d := new(diag.List).Errorf(code, span, format, args...)
	p.report(d)
	return d
}

// report adds an error to those of the file, until there are too many.
func (p *parser) report(d *diag.Diagnostic) {
	p.failed = true
	p.errors++
	if p.errors > maxErrors {
		return
	}
	p.diags.Add(d)
	if p.errors == maxErrors {
		d.Note("further errors in this file are not shown")
	}
}
