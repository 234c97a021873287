package parser

import (
	"fmt"

	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/diag/suggest"
	"github.com/megatrain/mtc/lang/source"
)

// describe names a token in a message.
func describe(t *token) string {
	switch {
	case t.kind == kEOF || t.text == "":
		return "the end of the line"
	case t.body != nil:
		return "`{`"
	case t.kind == kString:
		return "the string " + clip(t.text)
	}
	return "`" + clip(t.text) + "`"
}

// forms shows how the lines that start with a word are written.
var forms = map[string]string{
	"model":   "`model NAME(D = 768, L = 12) { ... }`, or `model NAME = OTHER(D = 1024)`",
	"train":   "`train { ... }`",
	"use":     "`use \"file.mt\"`",
	"preset":  "`preset NAME { D = 1024, L = 24 }`",
	"init":    "`init normal(0.02)`",
	"block":   "`block NAME(x) { ... }`",
	"forward": "`forward(tokens) { ... }`",
	"weights": "`weights NAME { ... }`",
	"repeat":  "`repeat L { ... }`, or `repeat L as i { ... }`",
	"return":  "`return value`",
	"if":      "`if c { ... } else { ... }`, or `if c then a else b` inside an expression",
}

// site is a place in a line where the grammar could not go on.
type site struct {
	p    *parser
	toks []token
	at   int // index of the token that does not fit, len(toks) for the end of the line
	tok  token
	prev token
	open string // innermost open bracket before it, "" for none
}

// unexpected reports the token that the grammar could not take.
func (p *parser) unexpected(toks []token, at int) {
	s := &site{p: p, toks: toks, at: at}
	if at > 0 {
		s.prev = toks[at-1]
	}
	if at < len(toks) {
		s.tok = toks[at]
	} else {
		end := toks[len(toks)-1].end
		s.tok = token{kind: kEOF, start: end, end: end}
	}
	var open []string
	for _, t := range toks[:at] {
		switch {
		case t.is("("), t.is("["):
			open = append(open, t.text)
		case (t.is(")") || t.is("]")) && len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		s.open = open[len(open)-1]
	}
	s.report()
}

func (s *site) span() source.Span {
	if s.tok.body != nil {
		return s.p.span(s.tok.start, s.tok.start+1)
	}
	return s.tok.span(s.p.file)
}

func (s *site) expected(what string, args ...any) *diag.Diagnostic {
	return s.p.errorf("MT0101", s.span(), "expected %s, found %s", fmt.Sprintf(what, args...), describe(&s.tok))
}

func (s *site) report() {
	first := s.toks[0]
	s.intoOptional(&first)
	next := s.next()
	switch {
	case s.prev.kind == kKeyword && (s.tok.is("=") || s.tok.is("+=")):
		s.tok = s.prev
		s.reservedName()
	case s.isReservedName(&next):
		s.reservedName()
	case s.prev.is(":") && s.at == 2 && (s.p.place == inTrain || s.p.place == inPreset):
		s.p.errorf("MT0101", s.prev.span(s.p.file), "expected `=` after `%s`, found `:`", first.text).
			Hint("write `%s = ...`", first.text)
	case s.prev.is(":"):
		s.p.errorf("MT0111", s.span(), "a label names a call, found %s", describe(&s.tok)).
			Hint("`up: linear(h, F)` names the weights of a call; a value gets its name with `=`")
	case s.tok.is("if") && (s.prev.kind == kOp || s.prev.kind == kPrefix):
		s.p.errorf("MT0109", s.span(), "a condition inside an operator stands in parentheses").
			Hint("write `%s (if c then a else b)`", s.prev.text)
	case s.headError(&first):
	case s.p.place == inPreset && s.prev.is(","):
		s.name()
	case s.at == 0:
		s.firstWord(&next)
	case s.p.place == inWeights && !s.seen("=") && !first.is("if"):
		s.weightTarget()
	case s.tok.kind == kTarget && !s.prev.endsOperand() && s.prev.body == nil:
		s.step()
		s.assignment()
	case first.text == "init" && s.at == 1 && s.p.place == inModel:
		s.noValue()
	case s.prev.endsOperand() || s.prev.isName() || s.prev.body != nil:
		s.afterValue(&first)
	default:
		s.noValue()
	}
}

// intoOptional moves the site into an optional part that failed on its second token: the
// grammar then reports the first one.
func (s *site) intoOptional(first *token) {
	next := s.next()
	switch {
	case s.tok.is("as") && first.is("repeat") && s.open == "" && next.kind != kIdent,
		s.tok.is("[") && s.p.place == inWeights && !s.seen("=") && next.kind != kIdent,
		s.tok.kind == kLabel && s.p.place <= inModel && s.open == "(" && (s.prev.is("(") || s.prev.is(",")) && !s.inDefault():
		s.step()
	}
}

// seen reports whether a token stands before the site.
func (s *site) seen(text string) bool {
	for i := range s.toks[:s.at] {
		if s.toks[i].is(text) {
			return true
		}
	}
	return false
}

func (s *site) reservedName() {
	s.p.errorf("MT0110", s.span(), "`%s` is a reserved word, it cannot be a name", s.tok.text).
		Hint("reserved are %s", suggest.List(Reserved))
}

// assignment reports `=` inside an expression.
func (s *site) assignment() {
	s.p.errorf("MT0101", s.span(), "`%s` cannot stand in an expression", s.tok.text).
		Hint("an assignment is a statement of its own; `==` compares")
}

// weightTarget reports what is wrong before the `=` of an entry of a weights map.
func (s *site) weightTarget() {
	if s.prev.is("[") {
		s.expected("the name of an index").Hint("`layer[i].q` stands for all indices, `{i}` in the text on the right for each of them")
		return
	}
	s.expected("`=`").Hint("write `layer[i].q = \"h.{i}.q\"`")
}

func (s *site) next() token {
	if s.at+1 < len(s.toks) {
		return s.toks[s.at+1]
	}
	return token{}
}

// name reports what should be `NAME = value`.
func (s *site) name() {
	if s.tok.isName() {
		s.step()
		s.expected("`=` after `%s`", s.prev.text)
		return
	}
	s.expected("a name and `=`")
}

// isReservedName reports whether the token is a reserved word used as a name.
func (s *site) isReservedName(next *token) bool {
	if s.tok.kind != kKeyword {
		return false
	}
	if next.is("=") || next.is("+=") || next.is(":") || next.is("(") && s.tok.text != "if" && s.tok.text != "return" {
		return true
	}
	if s.prev.is("as") {
		return true
	}
	if s.at != 1 {
		return s.open != "" && (s.prev.is("(") || s.prev.is(",")) && (next.is(",") || next.is(")"))
	}
	switch s.toks[0].text {
	case "model", "block", "preset", "weights":
		return true
	}
	return false
}

// step moves the site one token on.
func (s *site) step() {
	s.prev = s.tok
	s.at++
	if s.at < len(s.toks) {
		s.tok = s.toks[s.at]
	} else {
		s.tok = token{kind: kEOF, start: s.prev.end, end: s.prev.end}
	}
}

// inDefault reports whether the site is in the default of a parameter.
func (s *site) inDefault() bool {
	depth := 0
	for i := s.at - 1; i > 0; i-- {
		switch t := &s.toks[i]; {
		case t.is(")"):
			depth++
		case t.is("("):
			if depth == 0 {
				return false
			}
			depth--
		case t.is(",") && depth == 0:
			return false
		case t.is("=") && depth == 0:
			return true
		}
	}
	return false
}
