package jinja

import "slices"

// Statements.
type (
	stmt  interface{}
	text  string
	print struct {
		e    expr
		line int
	}
	ifStmt struct {
		conds []expr
		thens [][]stmt
		other []stmt
		line  int
	}
	forStmt struct {
		names       []string
		iter, where expr
		body, other []stmt
		line        int
	}
	setStmt struct {
		targets []expr // names, or attributes of a namespace
		val     expr
		body    []stmt // of a block, instead of val
		filters expr   // applied to the block, on blockValue
		line    int
	}
	macroStmt struct {
		name     string
		names    []string
		defaults []expr
		body     []stmt
		line     int
	}
	callStmt struct {
		call  expr
		macro *macroStmt
		line  int
	}
	filterStmt struct {
		e    expr // on blockValue
		body []stmt
		line int
	}
	genStmt   struct{ body []stmt }
	breakStmt struct{ next bool }
)

// parser reads segments; the tokens of the tag in hand are read by the methods of expr.go.
type parser struct {
	segs   []seg
	at     int
	toks   []token
	pos    int
	line   int
	depth  int
	loops  int
	marked bool
}

func (p *parser) fail(format string, args ...any) { throw(p.line, format, args...) }

// block reads statements up to a tag that closes one, and gives its word; the tokens behind
// that word wait. At the end of the template the word is empty.
func (p *parser) block() (body []stmt, end string) {
	if p.depth++; p.depth > maxDepth {
		p.fail("blocks are nested too deeply")
	}
	defer func() { p.depth-- }()
	for p.at < len(p.segs) {
		s := p.segs[p.at]
		p.at++
		p.line = s.line
		switch s.kind {
		case 't':
			body = append(body, text(s.text))
			continue
		case '{':
			p.toks, p.pos = lex(s.text, s.line), 0
			e := p.expr()
			p.end()
			body = append(body, print{e, s.line})
			continue
		}
		p.toks, p.pos = lex(s.text, s.line), 0
		word := p.name()
		if st := p.statement(word); st != nil {
			body = append(body, st)
		} else {
			return body, word
		}
	}
	return body, ""
}

// statement reads the statement of a word; nil when the word closes one.
func (p *parser) statement(word string) stmt {
	line := p.line
	switch word {
	case "if":
		return p.ifStmt()
	case "for":
		return p.forStmt()
	case "set":
		return p.setStmt()
	case "macro":
		m := &macroStmt{line: line, name: p.name()}
		m.names, m.defaults = p.params()
		p.end()
		m.body = p.until("endmacro")
		return m
	case "call":
		m := &macroStmt{line: line, name: "caller"}
		if p.is("(") {
			m.names, m.defaults = p.params()
		}
		c := &callStmt{macro: m, line: line, call: p.expr()}
		p.end()
		m.body = p.until("endcall")
		return c
	case "filter":
		f := &filterStmt{line: line, e: p.filters(blockValue{})}
		p.end()
		f.body = p.until("endfilter")
		return f
	case "generation":
		p.end()
		p.marked = true
		return &genStmt{p.until("endgeneration")}
	case "break", "continue":
		p.end()
		if p.loops == 0 {
			p.fail("`%s` stands in no loop", word)
		}
		return breakStmt{word == "continue"}
	case "elif", "else", "endif", "endfor", "endset", "endmacro", "endcall", "endfilter", "endgeneration":
		return nil
	}
	p.fail("the tag `%s` is not known", word)
	return nil
}

// until reads a block that one of some words closes.
func (p *parser) until(words ...string) []stmt {
	line := p.line
	body, end := p.block()
	if !slices.Contains(words, end) {
		throw(line, "the block is not closed with `%s`", words[len(words)-1])
	}
	p.end()
	return body
}

func (p *parser) ifStmt() stmt {
	s := &ifStmt{line: p.line, conds: []expr{p.expr()}}
	p.end()
	for {
		body, end := p.block()
		s.thens = append(s.thens, body)
		switch end {
		case "elif":
			s.conds = append(s.conds, p.expr())
			p.end()
			continue
		case "else":
			p.end()
			s.other = p.until("endif")
		case "endif":
			p.end()
		default:
			throw(s.line, "`if` is not closed with `endif`")
		}
		return s
	}
}

func (p *parser) forStmt() stmt {
	s := &forStmt{line: p.line, names: p.names()}
	p.want("in")
	s.iter = p.or() // a condition behind it is the loop's
	if p.take("if") {
		s.where = p.expr()
	}
	if p.is("recursive") {
		p.fail("a recursive loop is not known")
	}
	p.end()
	p.loops++
	body, end := p.block()
	p.loops--
	s.body = body
	switch end {
	case "else":
		p.end()
		s.other = p.until("endfor")
	case "endfor":
		p.end()
	default:
		throw(s.line, "`for` is not closed with `endfor`")
	}
	return s
}

// names are `a` or `a, b` or `(a, b)`.
func (p *parser) names() []string {
	paren := p.take("(")
	out := []string{p.name()}
	for p.take(",") {
		out = append(out, p.name())
	}
	if paren {
		p.want(")")
	}
	return out
}

func (p *parser) setStmt() stmt {
	s := &setStmt{line: p.line}
	for {
		n := p.name()
		if p.take(".") {
			s.targets = append(s.targets, attr{nameExpr{n, p.line}, p.name(), p.line})
		} else {
			s.targets = append(s.targets, nameExpr{n, p.line})
		}
		if !p.take(",") {
			break
		}
	}
	if p.take("=") {
		s.val = p.tuple()
		p.end()
		return s
	}
	if len(s.targets) > 1 {
		p.fail("a block sets one name")
	}
	if p.take("|") {
		p.pos--
		s.filters = p.postfixFilters(blockValue{})
	}
	p.end()
	s.body = p.until("endset")
	return s
}

// params are the parameters of a macro.
func (p *parser) params() (names []string, defaults []expr) {
	p.want("(")
	for !p.take(")") {
		names = append(names, p.name())
		var d expr
		if p.take("=") {
			d = p.expr()
		}
		defaults = append(defaults, d)
		if !p.is(")") {
			p.want(",")
		}
	}
	return names, defaults
}
