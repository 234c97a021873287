package parser

// depthCounter bounds the nesting of a text while it is scanned, before anything recursive
// sees it: a deep tree overflows the stack, and a stack overflow cannot be recovered. It
// counts open brackets and braces, conditions (`if c then a else if ...`) and runs of signs.
type depthCounter struct {
	open  []level // open brackets and braces; the first entry stands for the text outside
	conds int     // sum over open
	signs int     // run of prefix operators
	chain int     // operators of the current expression without those in inner brackets
	last  token
}

// level is an open bracket or brace, or the text outside of all.
type level struct {
	brace bool
	conds int // conditions of its current expression or statement
	ops   int // operators of its current expression
}

// add counts a token and returns the nesting at it.
func (d *depthCounter) add(t *token) int {
	if len(d.open) == 0 {
		d.open = []level{{brace: true}}
	}
	top := &d.open[len(d.open)-1]
	if t.nl && top.brace && !t.is("}") || t.is(",") || t.is(";") {
		d.conds -= top.conds
		top.conds, top.ops = 0, 0
	}
	switch {
	case t.is("(") || t.is("[") || t.is("{"):
		d.open = append(d.open, level{brace: t.text == "{"})
	case t.is(")") || t.is("]") || t.is("}"):
		if len(d.open) > 1 {
			d.conds -= top.conds
			d.open = d.open[:len(d.open)-1]
		}
	case t.is("if"):
		d.conds++
		top.conds++
	case t.kind == kOp, t.word("and"), t.word("or"):
		top.ops++
		d.chain = top.ops
	}
	last := *t
	if (t.text == "-" || t.text == "not") && !d.last.endsOperand() {
		d.signs++
		last.kind = kPrefix
	} else {
		d.signs = 0
	}
	d.last = last
	return len(d.open) - 1 + d.conds + d.signs
}
