package parser

// line is one declaration, item or statement: its tokens, with a body token for each
// `{ ... }` in it.
type line struct {
	toks []token
	bad  bool // something in it was reported already
}

// group is what stands between `{` and `}`.
type group struct {
	open, close token // close is empty when the brace is missing
	lines       []*line
	indent      int // of the line that holds the open brace
	end         int // offset after the close brace, or where it should be
}

// cut splits the tokens into nested lines. A line ends at a line break or `;`, and after `}`
// unless `else` follows. Words that can only start a declaration or a model item show where a
// closing brace is missing or one stands too many, so that the rest of the file is read as it
// was meant.
func (p *parser) cut(toks []token) []*line {
	p.bodies = map[int]*group{}
	c := &cutter{parser: p, toks: toks, root: &group{}}
	c.stack = []*group{c.root}
	for c.i < len(c.toks) && c.toks[c.i].kind != kEOF {
		c.step()
	}
	c.endLine()
	for len(c.stack) > 1 {
		c.reportOpen(nil)
		c.pop(token{})
	}
	return c.root.lines
}

type cutter struct {
	*parser
	toks    []token
	i       int
	root    *group
	stack   []*group // open groups, root first
	cur     []*line  // the unfinished line of each open group
	suspect *group   // closed by a brace that stands further left than its own line
	indent  int      // of the line that the current token stands on
	told    bool     // a missing brace was reported; more of them have the same cause
}

func (c *cutter) top() *group { return c.stack[len(c.stack)-1] }

// line returns the unfinished line of the innermost group, nil when none.
func (c *cutter) line() *line {
	if len(c.cur) < len(c.stack) {
		return nil
	}
	return c.cur[len(c.stack)-1]
}

// add puts a token on the current line.
func (c *cutter) add(t token) {
	for len(c.cur) < len(c.stack) {
		c.cur = append(c.cur, nil)
	}
	l := c.cur[len(c.stack)-1]
	if l == nil {
		l = &line{}
		c.cur[len(c.stack)-1] = l
		c.top().lines = append(c.top().lines, l)
	}
	if t.kind == kBad {
		l.bad = true
		return
	}
	l.toks = append(l.toks, t)
}

// endLine finishes the current line.
func (c *cutter) endLine() {
	if l := c.line(); l != nil {
		if len(l.toks) == 0 {
			g := c.top()
			g.lines = g.lines[:len(g.lines)-1]
		}
		c.cur[len(c.stack)-1] = nil
	}
}

func (c *cutter) push(open token) {
	g := &group{open: open, indent: c.indent}
	c.bodies[open.start] = g
	c.add(token{kind: kStmtBody, text: "{...}", start: open.start, end: open.end, body: g})
	c.stack = append(c.stack, g)
}

// pop closes the innermost group.
func (c *cutter) pop(close token) {
	c.endLine()
	g := c.top()
	g.close = close
	end := close.end
	if close.end == 0 {
		end = g.open.end
		if c.i > 0 {
			end = max(end, c.toks[c.i-1].end)
		}
	}
	c.stack = c.stack[:len(c.stack)-1]
	c.cur = c.cur[:min(len(c.cur), len(c.stack))]
	l := c.line()
	l.toks[len(l.toks)-1].end = end
	g.end = end
}

// startLine notes the column of the first token of a line, in bytes. Only blanks stand before it.
func (c *cutter) startLine(t *token) {
	off := t.start
	for off > 0 && (c.file.Text[off-1] == ' ' || c.file.Text[off-1] == '\t') {
		off--
	}
	c.indent = t.start - off
}

func (c *cutter) step() {
	t := c.toks[c.i]
	if t.nl {
		c.startLine(&t)
		if t.is("else") && c.afterBody() {
			c.errorf("MT0101", t.span(c.file), "`else` starts a line").Hint("it stays on the line of its `}`: `} else {`")
		} else {
			c.endLine()
			c.recover(&t)
		}
	} else if c.afterBody() && !t.is("else") && !t.is(";") && !t.is("}") && t.kind != kBad {
		c.errorf("MT0101", t.span(c.file), "expected the end of the line after `}`, found %s", describe(&t)).
			Hint("start a new line, or write `;`")
		c.endLine()
	}
	switch {
	case t.is(";"):
		c.endLine()
	case t.is("{"):
		c.push(t)
	case t.is("}"):
		c.closeBrace(&t)
	default:
		c.add(t)
	}
	c.i++
}

// afterBody reports whether the current line ends with a body.
func (c *cutter) afterBody() bool {
	l := c.line()
	return l != nil && len(l.toks) > 0 && l.toks[len(l.toks)-1].body != nil
}

func (c *cutter) closeBrace(t *token) {
	if len(c.stack) == 1 {
		c.errorf("MT0108", t.span(c.file), "`}` closes nothing").Hint("delete it, or look for one too many above")
		c.endLine()
		return
	}
	g := c.top()
	if t.nl && c.suspect == nil && c.indent < g.indent {
		c.suspect = g
	}
	c.pop(*t)
}

// recover looks at the first token of a line for signs that a brace is missing or one stands too many.
func (c *cutter) recover(t *token) {
	depth := len(c.stack) - 1
	decl, item := c.startsDecl(t), c.startsItem(t)
	switch {
	case decl && depth > 0:
		for len(c.stack) > 1 {
			c.reportOpen(t)
			c.pop(token{})
		}
		c.endLine()
		c.told, c.suspect = false, nil
	case item && depth > 1:
		for len(c.stack) > 2 {
			c.reportOpen(t)
			c.pop(token{})
		}
		c.endLine()
		c.told, c.suspect = false, nil
	case item && depth == 0:
		c.reopen(t)
	}
}

// reportOpen reports the innermost open brace, or the one that the indentation speaks against, once
// for a run of missing braces.
func (c *cutter) reportOpen(before *token) {
	if c.told {
		return
	}
	c.told = true
	g := c.top()
	if c.suspect != nil {
		g = c.suspect
	}
	d := c.errorf("MT0102", g.open.span(c.file), "`{` is not closed")
	if before != nil {
		d.Also(before.span(c.file), "`%s` cannot stand inside it", before.text)
	}
	if c.suspect != nil && g.close.end > 0 {
		d.Also(g.close.span(c.file), "this closes it, by its indentation it was meant for another")
	}
	d.Hint("add the `}`")
}

// reopen handles a model item at the top level right after a model: a brace too many closed it.
func (c *cutter) reopen(t *token) {
	n := len(c.root.lines)
	if n == 0 {
		return
	}
	last := c.root.lines[n-1]
	b := &last.toks[len(last.toks)-1]
	if !last.toks[0].is("model") || b.body == nil {
		return
	}
	c.errorf("MT0108", b.body.close.span(c.file), "this `}` closes the model, but its `%s` follows", t.text).
		Also(t.span(c.file), "belongs to the model").
		Hint("delete the `}` that is one too many")
	b.body.close = token{}
	for len(c.cur) < 1 {
		c.cur = append(c.cur, nil)
	}
	c.cur[0] = last
	c.stack = append(c.stack, b.body)
}

// startsDecl reports whether t, first on its line, starts a declaration.
func (c *cutter) startsDecl(t *token) bool {
	next := nextGood(c.toks, c.i)
	return t.is("model") && next.kind != kPunct || t.word("use") && next.kind == kString || t.word("train") && next.is("{")
}

// startsItem reports whether t, first on its line, starts an item of a model.
func (c *cutter) startsItem(t *token) bool {
	next := nextGood(c.toks, c.i)
	switch t.text {
	case "block":
		return t.kind == kKeyword && next.isName()
	case "forward":
		return t.kind == kKeyword && (next.isName() || next.is("(") || next.is("{"))
	case "preset", "weights":
		return t.kind == kIdent && next.isName() && c.i+2 < len(c.toks) && c.toks[c.i+2].is("{")
	}
	return false
}
