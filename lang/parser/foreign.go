package parser

import "github.com/megatrain/mtc/lang/diag"

// foreign says how what other languages write with a word is written here.
var foreign = map[string]string{
	"for":    "a loop is `repeat n as i { ... }`, in `forward`",
	"while":  "a loop is `repeat n { ... }`, in `forward`; its count is a constant",
	"let":    "a variable is made by assigning to it: `h = ...`",
	"var":    "a variable is made by assigning to it: `h = ...`",
	"const":  "constants are parameters of the model, with a default",
	"elif":   "write `else if`",
	"def":    "parts of a model are blocks: `block NAME(x) { ... }`",
	"func":   "parts of a model are blocks: `block NAME(x) { ... }`",
	"fn":     "parts of a model are blocks: `block NAME(x) { ... }`",
	"class":  "parts of a model are blocks: `block NAME(x) { ... }`",
	"import": "models of another file are made known by `use \"file.mt\"`, at the top",
	"pass":   "a body may be empty: `{ }`",
}

// comment is said where other languages' comments stand.
const comment = "a comment is `//` to the end of its line"

// foreignWord gives the hint for a statement that starts as other languages have them: by a word, or by
// an assignment that computes.
func (s *site) foreignWord(next *token) string {
	if h := foreign[s.tok.text]; h != "" && s.tok.kind != kOp {
		return h
	}
	if s.tok.is("/") && next.is("*") {
		return comment
	}
	if s.tok.kind == kIdent && s.at+2 < len(s.toks) && next.kind == kOp && s.toks[s.at+2].text == "=" {
		return "write `" + s.tok.text + " = " + s.tok.text + " " + next.text + " ...`; `+=` alone adds to a variable"
	}
	return ""
}

// foreignAfter hints at what other languages write behind a value.
func (s *site) foreignAfter(d *diag.Diagnostic) {
	if next := s.next(); s.tok.kind == kOp && next.start == s.tok.end { // in brackets the grammar steps back to the operator
		s.foreignPair(d, s.tok.text, next.text)
		return
	}
	switch s.tok.text {
	case ".":
		d.Hint("values have no parts, and ops stand in no module: `linear(x, D)`; weights are named by labels, in `tie` and in `weights`")
	case "[":
		d.Hint("values are not indexed; ops take whole tensors, and `tie` takes a label: `tie = wte`")
	case "?":
		d.Hint("conditions are `if c then a else b`")
	}
}

// foreignPair hints at an operator of other languages whose first half is one here.
func (s *site) foreignPair(d *diag.Diagnostic, first, second string) bool {
	switch first + second {
	case "**":
		d.Hint("there is no power: write the product, `x * x`; constants also have `sqrt(x)`")
	case "/*":
		if s.p.place == inTrain {
			d.Hint("a path stands in quotes: `\"data/*.bin\"`")
		} else {
			d.Hint(comment)
		}
	case "*=", "-=", "/=", "%=":
		d.Hint("`+=` alone computes and assigns; write `x = x %s ...`", first)
	default:
		return false
	}
	return true
}
