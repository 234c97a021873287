package parser

import (
	"fmt"

	"github.com/megatrain/mtc/lang/diag/suggest"
)

// headError reports what is missing in the fixed part of a line such as `block NAME(x) {`.
func (s *site) headError(first *token) bool {
	form := forms[first.text]
	if form == "" || first.text == "if" || s.at == 0 || first.kind == kTarget || first.kind == kCallee && first.text != "forward" {
		return false
	}
	params := first.text == "model" || first.text == "block" || first.text == "forward"
	switch {
	case first.text == "use" && s.at == 1:
		s.expected("a path in quotes").Hint("write %s", form)
	case (first.text == "train" || first.text == "preset" && s.at == 2 || first.text == "weights" && s.at == 2) && s.at <= 2:
		s.expected("`{`").Hint("write %s", form)
	case s.at == 1 && (first.text == "block" || first.text == "forward") && (s.tok.kind == kIdent || first.text == "forward"):
		// The name is there, the parameters are not.
		if first.text == "block" {
			s.step()
		}
		s.expected("`(` and parameters").Hint("write %s", form)
	case s.at == 1 && first.text != "repeat" && first.text != "return" && first.text != "init":
		s.expected("a name").Hint("write %s", form)
	case params && s.open == "(" && (s.prev.is("(") || s.prev.is(",")):
		s.expected("a parameter").Hint("a parameter is a name, or a name with a default: `D = 768`")
	case params && s.open == "(" && s.prev.isName() && !s.inDefault():
		d := s.expected("`,`, `=` or `)`")
		if s.tok.is(":") {
			d.Hint("parameters have no types; a default is written `%s = 3`", s.prev.text)
		}
	case params && s.open == "" && (s.prev.is(")") || first.text == "model" && s.at == 2):
		s.expected("`{`").Hint("write %s", form)
	case first.text == "repeat" && s.prev.is("as"):
		s.expected("a name for the counter").Hint("write %s", form)
	case first.text == "repeat" && s.open == "" && s.tok.body == nil && s.at > 1 && s.prev.kind != kOp && s.prev.kind != kPrefix:
		s.expected("`{` or `as`").Hint("write %s", form)
	default:
		return false
	}
	return true
}

// firstWord reports a line that starts with nothing a statement starts with.
func (s *site) firstWord(next *token) {
	switch s.p.place {
	case inPreset, inTrain, inWeights:
		if !s.tok.is("else") {
			s.name()
			return
		}
	case inExpr:
		s.noValue()
		return
	}
	if s.tok.is("else") {
		s.p.errorf("MT0101", s.span(), "`else` without `if`").Hint("it follows the `}` of an `if` on the same line")
		return
	}
	if s.tok.kind == kIdent && (next.is(",") || next.is(".") || next.is("[")) {
		s.step()
		d := s.expected("`=`")
		if s.tok.is(",") {
			d.Hint("a statement assigns one variable")
		}
		return
	}
	d := s.p.errorf("MT0101", s.span(), "a statement is an assignment, a call, `if`, `repeat` or `return`, found %s", describe(&s.tok))
	if h := s.foreignWord(next); h != "" {
		d.Hint("%s", h)
	} else if s.tok.kind == kIdent {
		if h := suggest.Hint(s.tok.text, []string{"if", "repeat", "return"}); h != "" {
			d.Hint("%s", h)
		} else if next.kind == kTarget {
			d.Hint("a variable is made by assigning to it: `%s = ...`", next.text)
		} else if next.text == "" {
			d.Hint("assign it, as in `y = %s`, or return it", s.tok.text)
		}
	}
}

// afterValue reports a token after a complete value.
func (s *site) afterValue(first *token) {
	conds, thens, elses := s.conditions()
	switch {
	case s.tok.is("=") || s.tok.is("+="):
		s.assignment()
	case conds > thens && !(first.is("if") && conds == 1):
		s.expected("`then`").Hint("write `if c then a else b`")
	case thens > elses:
		s.expected("`else`").Hint("a condition has both values: `if c then a else b`")
	case first.is("if") && s.open == "" && s.prev.body == nil:
		s.expected("`{`").Hint("write %s", forms["if"])
	case s.prev.body != nil:
		s.expected("the end of the line")
	case s.open == "(":
		d := s.expected("`,` or `)`")
		if s.tok.kind == kTarget {
			d.Hint("a comma stands between arguments")
		}
		s.foreignAfter(d)
	case s.open == "[":
		s.expected("`]`")
	case s.tok.body != nil:
		s.p.errorf("MT0101", s.span(), "`{` cannot stand here").Hint("only `if`, `else` and `repeat` have a body in a block")
	default:
		d := s.expected("an operator or the end of the line")
		s.foreignAfter(d)
		if s.tok.is(",") && s.p.place == inTrain {
			d.Hint("a field stands on a line of its own, or before `;`; on the command line each has its own `--set`")
		}
		if s.tok.kind == kTarget || s.tok.kind == kCallee || s.tok.kind == kLabel {
			d.Hint("start a new line, or write `;` between statements")
		}
	}
}

// conditions counts the words of conditional expressions in the innermost bracket before the site.
func (s *site) conditions() (conds, thens, elses int) {
	depth := 0
	for i := s.at - 1; i >= 0; i-- {
		switch t := &s.toks[i]; {
		case t.is(")"), t.is("]"):
			depth++
		case t.is("("), t.is("["):
			if depth == 0 {
				return
			}
			depth--
		case depth > 0:
		case t.is(",") || t.is("=") && s.open == "(":
			return
		case t.is("if"):
			conds++
		case t.is("then"):
			thens++
		case t.is("else") && s.toks[i-1].body == nil:
			elses++
		}
	}
	return
}

// noValue reports a token where a value must stand.
func (s *site) noValue() {
	switch s.tok.text {
	case "block", "forward", "model", "as", "return", "repeat":
		if s.tok.kind == kKeyword {
			s.reservedName()
			return
		}
	}
	what := "a value"
	if s.prev.text != "" {
		what = fmt.Sprintf("a value after `%s`", s.prev.text)
	}
	d := s.expected("%s", what)
	switch {
	case s.prev.end == s.tok.start && s.foreignPair(d, s.prev.text, s.tok.text):
	case s.tok.kind == kEOF && s.prev.kind == kOp && s.open == "":
		d.Hint("a line breaks only inside brackets: put the expression in parentheses to go on")
	case s.tok.is("["):
		d.Hint("there are no lists and no indexing here")
	case forms[s.prev.text] != "":
		d.Hint("write %s", forms[s.prev.text])
	case s.tok.body != nil:
		d.Hint("a body stands after `if c`, `else` and `repeat n` only")
	}
}
