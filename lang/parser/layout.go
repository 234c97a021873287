package parser

import "strings"

// layout decides which line breaks end a statement. Inside ( and [ a line may break after an
// opening bracket, a comma or an operator, or before the closing bracket; its tokens lose
// their nl mark. Anywhere else the bracket is reported as unclosed at that line, closed, and the
// statement ends. After layout the brackets of every line are balanced and hold no brace. A line
// where something was reported carries a kBad token, so that it is not reported twice.
func (p *parser) layout(toks []token) []token {
	l := &layouter{parser: p, in: toks, out: make([]token, 0, len(toks)+8)}
	for l.i = 0; l.i < len(toks); l.i++ {
		l.step()
	}
	return l.out
}

type layouter struct {
	*parser
	in   []token
	out  []token
	i    int
	open []token // open brackets
}

func (l *layouter) step() {
	t := l.in[l.i]
	if len(l.open) > 0 {
		atBreak := t.nl && !l.mayBreak(&t)
		if atBreak || t.is("{") || t.is("}") || t.is(";") || t.kind == kEOF {
			if l.unclosed() {
				return
			}
		} else {
			t.nl = false
		}
	}
	switch {
	case t.is("("), t.is("["):
		l.open = append(l.open, t)
	case t.is(")"), t.is("]"):
		if !l.close(&t) {
			return
		}
	}
	l.out = append(l.out, t)
}

// mayBreak reports whether a line may break before t, inside brackets.
func (l *layouter) mayBreak(t *token) bool {
	if t.is(")") || t.is("]") {
		return true
	}
	if t.kind == kEOF || l.out[len(l.out)-1].rest {
		return false
	}
	last := l.lastGood()
	if l.onlyStatement(last) {
		return false
	}
	switch last.kind {
	case kOp:
		return true
	case kPunct:
		return strings.Contains("([,=", last.text)
	case kKeyword:
		return last.text == "then" || last.text == "else"
	case kIdent:
		// A logic word is an operator only after a value, so look one further back.
		if last.text == "not" {
			return true
		}
		if (last.text == "and" || last.text == "or") && len(l.out) > 1 {
			return l.out[len(l.out)-2].endsOperand()
		}
	}
	return false
}

// onlyStatement reports whether the current token starts what can be nothing but a new
// statement after last: then the bracket was meant to be closed before it.
func (l *layouter) onlyStatement(last *token) bool {
	t := &l.in[l.i]
	if t.kind == kKeyword {
		switch t.text {
		case "repeat", "return", "block", "forward", "model":
			return true
		}
	}
	if t.kind != kIdent || l.i+1 >= len(l.in) {
		return false
	}
	next := &l.in[l.i+1]
	return next.is("+=") || next.is("=") && last.kind == kOp
}

func (l *layouter) lastGood() *token {
	for i := len(l.out) - 1; i >= 0; i-- {
		if l.out[i].kind != kBad {
			return &l.out[i]
		}
	}
	return &token{}
}

// unclosed reports the innermost open bracket at the end of the line before the current
// token, and closes all. If the closing brackets stand on following lines that can be nothing but the
// rest of this statement (a comma was forgotten), it skips to them and returns true.
func (l *layouter) unclosed() bool {
	last := l.out[len(l.out)-1]
	if !last.rest {
		l.reportUnclosed(&last)
	}
	need := len(l.open)
	for i := need - 1; i >= 0; i-- {
		l.out = append(l.out,
			token{kind: kBad, start: last.end, end: last.end},
			token{kind: kPunct, text: closerOf[l.open[i].text], start: last.end, end: last.end})
	}
	l.open = l.open[:0]
	if l.in[l.i].nl {
		if end := l.restOfCall(need); end >= 0 {
			l.i = end
			return true
		}
	}
	return false
}

var closerOf = map[string]string{"(": ")", "[": "]"}

func (l *layouter) reportUnclosed(last *token) {
	open := l.open[len(l.open)-1]
	where := "on this line"
	if t := &l.in[l.i]; !t.nl && (t.is("{") || t.is("}") || t.is(";")) {
		where = "before `" + t.text + "`"
	}
	d := l.errorf("MT0102", l.span(last.end, last.end), "`%s` is not closed %s", open.text, where)
	if strings.Contains("([,", last.text) || last.kind == kOp {
		d.Mark("expected a value and `%s`", closerOf[open.text])
	} else {
		d.Mark("expected `,` or `%s`", closerOf[open.text])
	}
	if open.start != last.start {
		d.Also(open.span(l.file), "opened here")
	}
	d.Hint("a line breaks only after an opening bracket, a comma or an operator, or before the closing bracket")
}

// restOfCall looks for need closing brackets on the lines from the current token on, as
// long as these lines do not look like statements. It returns the index of the last one, or -1.
func (l *layouter) restOfCall(need int) int {
	depth := need
	for i := l.i; i < len(l.in); i++ {
		t := &l.in[i]
		if t.nl && i > l.i || i == l.i {
			if l.startsStatement(i) {
				return -1
			}
		}
		switch {
		case t.kind == kEOF, t.is("{"), t.is("}"), t.is(";"):
			return -1
		case t.is("("), t.is("["):
			depth++
		case t.is(")"), t.is("]"):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// startsStatement reports whether the line from in[i] on is a whole statement: it
// starts with a word that only a statement starts with, or is an assignment or call whose brackets are
// balanced and that does not go on after a comma.
func (l *layouter) startsStatement(i int) bool {
	t := &l.in[i]
	if t.kind == kKeyword {
		switch t.text {
		case "repeat", "return", "block", "forward", "model":
			return true
		}
	}
	if t.kind != kIdent || i+1 >= len(l.in) {
		return false
	}
	next := &l.in[i+1]
	if !next.is("=") && !next.is("+=") && !next.is("(") && !next.is(":") {
		return false
	}
	depth := 0
	j := i
	for ; j < len(l.in) && (j == i || !l.in[j].nl) && l.in[j].kind != kEOF; j++ {
		switch {
		case l.in[j].is("("), l.in[j].is("["):
			depth++
		case l.in[j].is(")"), l.in[j].is("]"):
			if depth--; depth < 0 {
				return false
			}
		}
	}
	return depth > 0 || !l.in[j-1].is(",")
}

// close matches a closing bracket. It is false when the token is to be dropped.
func (l *layouter) close(t *token) bool {
	if len(l.open) == 0 {
		l.errorf("MT0108", t.span(l.file), "`%s` closes nothing", t.text).Hint("delete it, or open `%s` before",
			map[string]string{")": "(", "]": "["}[t.text])
		l.out = append(l.out, token{kind: kBad, start: t.start, end: t.end, nl: t.nl})
		return false
	}
	open := l.open[len(l.open)-1]
	l.open = l.open[:len(l.open)-1]
	if want := closerOf[open.text]; t.text != want {
		l.errorf("MT0108", t.span(l.file), "`%s` is closed by `%s`", open.text, t.text).
			Mark("expected `%s`", want).Also(open.span(l.file), "opened here")
		l.out = append(l.out, token{kind: kBad, start: t.start, end: t.start})
		t.text = want
	}
	return true
}
