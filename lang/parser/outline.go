package parser

import (
	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
)

// Kind is the type of a Token of an Outline.
type Kind uint8

// The kinds.
const (
	NameToken    Kind = iota // a name
	KeywordToken             // a reserved word
	ValueToken               // a number or string
	OpToken                  // a binary operator
	PrefixToken              // a sign or `not`
	PunctToken               // ( ) [ ] , : . = +=
	BodyToken                // `{ ... }`
)

// Token is a piece of text of an Outline.
type Token struct {
	Kind       Kind
	Text       string
	Start, End int // byte offsets
	Body       *Body
}

// Body is what stands between braces.
type Body struct {
	Lines       []Line
	Open, Close int // offsets of `{` and of `}`
}

// Line is the tokens of one declaration, item or statement.
type Line []Token

// Outline returns the lines of a file as tokens, and its comments, for the formatter: the
// text without its spaces and line breaks. It has no meaning when the file has errors.
func Outline(f *source.File, l *diag.List) ([]Line, []ast.Comment) {
	p := &parser{file: f, diags: l}
	toks, ok := p.prepare()
	if !ok {
		return nil, p.comments
	}
	return outline(p.cut(toks)), p.comments
}

func outline(lines []*line) []Line {
	out := make([]Line, 0, len(lines))
	for _, l := range lines {
		row := make(Line, 0, len(l.toks))
		for i := range l.toks {
			t := &l.toks[i]
			o := Token{Kind: outlineKind(t), Text: t.text, Start: t.start, End: t.end}
			if t.body != nil {
				o.Body = &Body{Lines: outline(t.body.lines), Open: t.start, Close: t.body.close.start}
			}
			row = append(row, o)
		}
		out = append(out, row)
	}
	return out
}

func outlineKind(t *token) Kind {
	switch {
	case t.body != nil:
		return BodyToken
	case t.isName():
		return NameToken
	}
	switch t.kind {
	case kKeyword:
		return KeywordToken
	case kOp:
		return OpToken
	case kPrefix:
		return PrefixToken
	case kPunct:
		return PunctToken
	}
	return ValueToken
}
