package parser

import (
	"io"

	"github.com/alecthomas/participle/v2/lexer"

	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
)

// kind is the type of a token. Identifiers are typed by the token that follows, which
// makes the grammar LL(1) and puts errors on the right token.
type kind = lexer.TokenType

// The kinds of tokens.
const (
	kEOF     kind = lexer.EOF
	kIdent   kind = iota + 1 // a name
	kLabel                   // a name before `:`
	kTarget                  // a name before `=` or `+=`
	kCallee                  // a name before `(`
	kKeyword                 // a reserved word
	kInt
	kFloat
	kString
	kOp     // a binary operator
	kPrefix // `-` or `not` before an operand
	kPunct  // ( ) [ ] { } , : ; . = +=
	kBad    // something that was reported already
	kModelBody
	kStmtBody
	kWeightBody
	kPresetBody
	kTrainBody
)

// kindNames are the names of the kinds in the grammar.
var kindNames = map[string]kind{
	"EOF": kEOF, "Ident": kIdent, "Label": kLabel, "Target": kTarget, "Callee": kCallee, "Keyword": kKeyword,
	"Int": kInt, "Float": kFloat, "String": kString, "Op": kOp, "Prefix": kPrefix, "Punct": kPunct, "Bad": kBad,
	"ModelBody": kModelBody, "StmtBody": kStmtBody, "WeightBody": kWeightBody, "PresetBody": kPresetBody,
	"TrainBody": kTrainBody,
}

// Reserved lists the reserved words; all others are special only in their place.
var Reserved = []string{"if", "then", "else", "repeat", "as", "return", "block", "forward", "model", "true", "false", "none"}

var reserved = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range Reserved {
		m[w] = true
	}
	return m
}()

// token is a piece of the text. A body token stands for a whole `{ ... }`.
type token struct {
	kind       kind
	text       string
	start, end int
	nl         bool   // first on its line
	rest       bool   // kBad that took the rest of its line, closing brackets too
	body       *group // of a body token
}

func (t *token) span(f *source.File) source.Span {
	return source.Span{File: f, Start: t.start, End: t.end}
}

func (t *token) is(text string) bool {
	return t.text == text && (t.kind == kPunct || t.kind == kKeyword || t.kind == kOp)
}

// word reports whether t is the identifier or reserved word w.
func (t *token) word(w string) bool {
	switch t.kind {
	case kIdent, kLabel, kTarget, kCallee, kKeyword:
		return t.text == w
	}
	return false
}

// isName reports whether t is an identifier that is not reserved.
func (t *token) isName() bool {
	switch t.kind {
	case kIdent, kLabel, kTarget, kCallee:
		return true
	}
	return false
}

// endsOperand reports whether a value may end with t.
func (t *token) endsOperand() bool {
	switch t.kind {
	case kIdent, kInt, kFloat, kString:
		return true
	case kPunct:
		return t.text == ")" || t.text == "]"
	case kKeyword:
		return t.text == "true" || t.text == "false" || t.text == "none"
	}
	return false
}

// lex returns t as participle wants it. Only the offset of a position is used.
func (t *token) lex() lexer.Token {
	return lexer.Token{Type: t.kind, Value: t.text, Pos: lexer.Position{Offset: t.start}}
}

// definition is the lexer the grammar is built with. The parser itself feeds the grammar
// slices of tokens that the earlier stages made; Lex serves whoever has only a text.
type definition struct{ symbols map[string]lexer.TokenType }

// Symbols implements lexer.Definition.
func (d definition) Symbols() map[string]lexer.TokenType { return d.symbols }

// Lex implements lexer.Definition.
func (definition) Lex(name string, r io.Reader) (lexer.Lexer, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	var l diag.List
	p := &parser{file: source.New(name, text), diags: &l}
	toks, _ := p.prepare()
	return &tokenLexer{toks: toks, end: len(text)}, l.Err()
}

// tokenLexer hands out a slice of tokens.
type tokenLexer struct {
	toks []token
	next int
	end  int // offset of the end
}

// Next implements lexer.Lexer.
func (l *tokenLexer) Next() (lexer.Token, error) {
	if l.next >= len(l.toks) || l.toks[l.next].kind == kEOF {
		return lexer.EOFToken(lexer.Position{Offset: l.end}), nil
	}
	l.next++
	return l.toks[l.next-1].lex(), nil
}
