package parser

// classify types identifiers by the token that follows on the same line, tells signs from binary
// operators, and finds the logic words, which are special only in their place: `and` and
// `or` between two values, `not` before one.
func classify(toks []token) {
	var prev token // the last good token of the line
	for i := range toks {
		t := &toks[i]
		if t.kind == kBad {
			continue
		}
		if t.nl || t.is(";") || t.is("{") || t.is("}") {
			prev = token{}
		}
		next := nextGood(toks, i)
		switch t.kind {
		case kIdent:
			t.kind = identKind(t, &prev, next)
		case kOp:
			if t.text == "-" && !prev.endsOperand() {
				t.kind = kPrefix
			}
		}
		if prev = *t; prev.isName() {
			prev.kind = kIdent
		}
	}
}

// nextGood is the token after i on its line, or an empty one.
func nextGood(toks []token, i int) *token {
	for i++; i < len(toks) && !toks[i].nl; i++ {
		if toks[i].kind != kBad {
			return &toks[i]
		}
	}
	return &token{}
}

func identKind(t, prev, next *token) kind {
	switch t.text {
	case "and", "or":
		if prev.endsOperand() && (startsOperand(next) || next.text == "-") {
			return kOp
		}
	case "not":
		if !prev.endsOperand() && startsOperand(next) {
			return kPrefix
		}
	}
	switch {
	case next.is(":"):
		return kLabel
	case next.is("=") || next.is("+="):
		return kTarget
	case next.is("("):
		return kCallee
	}
	return kIdent
}

// startsOperand reports whether a value may start with t, a sign aside.
func startsOperand(t *token) bool {
	switch t.kind {
	case kIdent, kLabel, kTarget, kCallee, kInt, kFloat, kString:
		return t.text != "and" && t.text != "or"
	case kPunct:
		return t.text == "("
	case kKeyword:
		return t.text == "true" || t.text == "false" || t.text == "none"
	}
	return false
}
