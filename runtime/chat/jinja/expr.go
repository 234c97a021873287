package jinja

import "slices"

// Expressions.
type (
	expr     interface{}
	literal  struct{ val any }
	nameExpr struct {
		name string
		line int
	}
	attr struct {
		of   expr
		name string
		line int
	}
	index struct {
		of, at expr
		line   int
	}
	slice struct {
		of             expr
		from, to, step expr
		line           int
	}
	call struct {
		f     expr
		args  []expr
		names []string // of the arguments, "" where positional
		line  int
	}
	filter struct {
		of    expr
		name  string
		args  []expr
		names []string
		line  int
	}
	test struct {
		of   expr
		name string
		args []expr
		not  bool
		line int
	}
	unary struct {
		op   string
		a    expr
		line int
	}
	binary struct {
		op   string
		a, b expr
		line int
	}
	compare struct {
		first expr
		ops   []string
		rest  []expr
		line  int
	}
	cond struct {
		c, a, b expr
		line    int
	}
	list struct {
		items []expr
		tuple bool
	}
	dictExpr struct{ keys, vals []expr }
	// blockValue stands for the text of a block that filters are applied to.
	blockValue struct{}
)

func (p *parser) tok() token { return p.toks[p.pos] }

// is says whether the next token is an operator or a bare word.
func (p *parser) is(s string) bool {
	t := p.tok()
	return (t.kind == 'o' || t.kind == 'n') && t.text == s
}

func (p *parser) take(s string) bool {
	if p.is(s) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) want(s string) {
	if !p.take(s) {
		p.fail("wanted `%s`, not `%s`", s, p.tok().text)
	}
}

func (p *parser) end() {
	if p.tok().kind != 0 {
		p.fail("`%s` is too much", p.tok().text)
	}
}

func (p *parser) name() string {
	t := p.tok()
	if t.kind != 'n' {
		p.fail("wanted a name, not `%s`", t.text)
	}
	p.pos++
	return t.text
}

// tuple is an expression, or several with commas.
func (p *parser) tuple() expr {
	e := p.expr()
	if !p.is(",") {
		return e
	}
	l := list{items: []expr{e}, tuple: true}
	for p.take(",") {
		if p.tok().kind == 0 || p.is(")") {
			break
		}
		l.items = append(l.items, p.expr())
	}
	return l
}

// expr is `a if c else b`, which binds weakest.
func (p *parser) expr() expr {
	if p.depth++; p.depth > maxDepth {
		p.fail("expressions are nested too deeply")
	}
	defer func() { p.depth-- }()
	e := p.or()
	for p.take("if") {
		c := cond{c: p.or(), a: e, line: p.line}
		if p.take("else") {
			c.b = p.expr()
		}
		e = c
	}
	return e
}

func (p *parser) or() expr {
	e := p.and()
	for p.take("or") {
		e = binary{"or", e, p.and(), p.line}
	}
	return e
}

func (p *parser) and() expr {
	e := p.not()
	for p.take("and") {
		e = binary{"and", e, p.not(), p.line}
	}
	return e
}

func (p *parser) not() expr {
	if p.take("not") {
		return unary{"not", p.not(), p.line}
	}
	return p.compare()
}

func (p *parser) compare() expr {
	c := compare{first: p.sum(), line: p.line}
	for {
		op := p.tok().text
		switch {
		case p.tok().kind == 'o' && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, op), p.is("in"):
			p.pos++
		case p.is("not") && p.toks[p.pos+1].kind == 'n' && p.toks[p.pos+1].text == "in":
			op = "not in"
			p.pos += 2
		default:
			if len(c.ops) == 0 {
				return c.first
			}
			return c
		}
		c.ops, c.rest = append(c.ops, op), append(c.rest, p.sum())
	}
}

func (p *parser) sum() expr {
	e := p.concat()
	for p.is("+") || p.is("-") {
		op := p.tok().text
		p.pos++
		e = binary{op, e, p.concat(), p.line}
	}
	return e
}

func (p *parser) concat() expr {
	e := p.product()
	for p.take("~") {
		e = binary{"~", e, p.product(), p.line}
	}
	return e
}

func (p *parser) product() expr {
	e := p.sign()
	for p.is("*") || p.is("/") || p.is("//") || p.is("%") {
		op := p.tok().text
		p.pos++
		e = binary{op, e, p.sign(), p.line}
	}
	return e
}

func (p *parser) sign() expr {
	e := p.unary(true)
	for p.take("**") {
		e = binary{"**", e, p.unary(true), p.line}
	}
	return e
}

func (p *parser) unary(filters bool) (e expr) {
	if p.depth++; p.depth > maxDepth {
		p.fail("expressions are nested too deeply")
	}
	defer func() { p.depth-- }()
	if p.is("-") || p.is("+") {
		op := p.tok().text
		p.pos++
		e = unary{op, p.unary(false), p.line}
	} else {
		e = p.postfix(p.primary())
	}
	if filters {
		e = p.postfixFilters(e)
	}
	return e
}

// primary is a value without what follows it.
func (p *parser) primary() expr {
	t := p.tok()
	p.pos++
	switch {
	case t.kind == 's':
		s := t.text
		for p.tok().kind == 's' { // neighbours are one string
			s += p.tok().text
			p.pos++
		}
		return literal{s}
	case t.kind == 'i' || t.kind == 'f':
		return literal{t.val}
	case t.kind == 'n':
		switch t.text {
		case "true", "True":
			return literal{true}
		case "false", "False":
			return literal{false}
		case "none", "None":
			return literal{nil}
		}
		return nameExpr{t.text, p.line}
	case t.kind == 'o' && t.text == "(":
		if p.take(")") {
			return list{tuple: true}
		}
		e := p.tuple()
		p.want(")")
		return e
	case t.kind == 'o' && t.text == "[":
		l := list{}
		for !p.take("]") {
			l.items = append(l.items, p.expr())
			if !p.is("]") {
				p.want(",")
			}
		}
		return l
	case t.kind == 'o' && t.text == "{":
		d := dictExpr{}
		for !p.take("}") {
			d.keys = append(d.keys, p.expr())
			p.want(":")
			d.vals = append(d.vals, p.expr())
			if !p.is("}") {
				p.want(",")
			}
		}
		return d
	}
	p.pos--
	p.fail("wanted a value, not `%s`", t.text)
	return nil
}

// postfix is what stands behind a value: attributes, indices, calls.
func (p *parser) postfix(e expr) expr {
	for {
		switch {
		case p.take("."):
			if t := p.tok(); t.kind == 'i' {
				p.pos++
				e = index{e, literal{t.val}, p.line}
			} else {
				e = attr{e, p.name(), p.line}
			}
		case p.take("["):
			e = p.subscript(e)
		case p.take("("):
			c := call{f: e, line: p.line}
			c.args, c.names = p.args()
			e = c
		default:
			return e
		}
	}
}

func (p *parser) subscript(of expr) expr {
	var parts [3]expr
	n := 0
	for n < 3 {
		if !p.is(":") && !p.is("]") {
			parts[n] = p.expr()
		}
		n++
		if !p.take(":") {
			break
		}
		if n == 2 && p.is("]") {
			n = 3
		}
	}
	p.want("]")
	if n == 1 {
		if parts[0] == nil {
			p.fail("an index is empty")
		}
		return index{of, parts[0], p.line}
	}
	return slice{of, parts[0], parts[1], parts[2], p.line}
}

// args are the arguments of a call, behind its `(`.
func (p *parser) args() (args []expr, names []string) {
	for !p.take(")") {
		name := ""
		if t := p.toks[p.pos+min(1, len(p.toks)-1-p.pos)]; p.tok().kind == 'n' && t.kind == 'o' && t.text == "=" {
			name = p.name()
			p.want("=")
		}
		if p.is("*") || p.is("**") {
			p.fail("arguments that are unpacked are not known")
		}
		args, names = append(args, p.expr()), append(names, name)
		if !p.is(")") {
			p.want(",")
		}
	}
	return args, names
}

// postfixFilters are `| f` and `is t` behind a value.
func (p *parser) postfixFilters(e expr) expr {
	for {
		switch {
		case p.take("|"):
			e = p.filters(e)
		case p.take("is"):
			t := test{of: e, line: p.line}
			t.not = p.take("not")
			t.name = p.name()
			switch next := p.tok(); {
			case p.take("("):
				t.args, _ = p.args()
			case next.kind == 's' || next.kind == 'i' || next.kind == 'f' || next.kind == 'o' && (next.text == "[" || next.text == "{"),
				next.kind == 'n' && !slices.Contains([]string{"and", "or", "else", "if", "in", "is", "not"}, next.text):
				t.args = []expr{p.postfix(p.primary())}
			}
			e = t
		default:
			return e
		}
	}
}

// filters reads `name(args) | name ...`, behind the first `|`.
func (p *parser) filters(e expr) expr {
	for {
		f := filter{of: e, name: p.name(), line: p.line}
		if p.take("(") {
			f.args, f.names = p.args()
		}
		e = f
		if !p.take("|") {
			return e
		}
	}
}
