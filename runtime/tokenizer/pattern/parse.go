package pattern

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// node is a part of a parsed pattern.
type node struct {
	kind   nodeKind
	set    *class
	parts  []*node
	lo, hi int  // loop
	lazy   bool // loop
	atomic bool // loop: possessive
	neg    bool // look
}

type nodeKind uint8

const (
	nEmpty nodeKind = iota
	nClass
	nSeq
	nAlt
	nLoop
	nAhead
	nBehind
	nBegin
	nEnd
)

// maxNest bounds the depth of groups, maxCount the numbers of `{m,n}`.
const (
	maxNest  = 50
	maxCount = 1000
	maxCode  = 5000
)

// Compile reads a pattern.
func Compile(text string) (p *Pattern, err error) {
	ps := &parser{text: text}
	defer func() {
		if e, ok := recover().(*Error); ok {
			p, err = nil, e
		} else if e != nil {
			panic(e)
		}
	}()
	n := ps.alternatives(0, false)
	if ps.at < len(text) {
		ps.fail("a `)` without `(`")
	}
	c := &compiler{parser: ps}
	c.emit(n)
	c.add(instr{op: opMatch})
	return &Pattern{text: text, code: c.code, loops: c.loops}, nil
}

// Literal is the pattern that matches a text itself.
func Literal(text string) *Pattern {
	c := &compiler{}
	c.add(instr{op: opText, text: text})
	c.add(instr{op: opMatch})
	return &Pattern{text: text, code: c.code}
}

// MustCompile is Compile for patterns of this program.
func MustCompile(text string) *Pattern {
	p, err := Compile(text)
	if err != nil {
		panic(err)
	}
	return p
}

type parser struct {
	text string
	at   int
}

func (p *parser) fail(why string) { panic(&Error{p.text, p.at, why}) }

func (p *parser) peek(s string) bool { return strings.HasPrefix(p.text[p.at:], s) }

func (p *parser) take(s string) bool {
	if p.peek(s) {
		p.at += len(s)
		return true
	}
	return false
}

func (p *parser) rune() rune {
	if p.at >= len(p.text) {
		p.fail("it ends here, inside an expression")
	}
	r, n := utf8.DecodeRuneInString(p.text[p.at:])
	p.at += n
	return r
}

func (p *parser) alternatives(depth int, fold bool) *node {
	if depth > maxNest {
		p.fail("groups are nested too deeply")
	}
	alt := &node{kind: nAlt}
	for {
		seq := &node{kind: nSeq}
		for p.at < len(p.text) && !p.peek("|") && !p.peek(")") {
			seq.parts = append(seq.parts, p.loops(p.atom(depth, fold)))
		}
		alt.parts = append(alt.parts, seq)
		if !p.take("|") {
			return alt
		}
	}
}

// loops reads the quantifiers behind an atom.
func (p *parser) loops(n *node) *node {
	for {
		l := &node{kind: nLoop, parts: []*node{n}, hi: -1}
		switch {
		case p.take("*"):
		case p.take("+"):
			l.lo = 1
		case p.take("?"):
			l.hi = 1
		case p.peek("{") && p.counts(l):
		default:
			return n
		}
		switch {
		case p.take("?"):
			l.lazy = true
		case p.take("+"):
			l.atomic = true
		}
		n = l
	}
}

// counts reads `{m}`, `{m,}`, `{m,n}` or `{,n}`.
func (p *parser) counts(l *node) bool {
	body, _, ok := strings.Cut(p.text[p.at+1:], "}")
	lo, hi, two := strings.Cut(body, ",")
	if !ok || body == "" || strings.Trim(body, "0123456789,") != "" || (lo == "" && hi == "") {
		return false
	}
	num := func(s string, none int) int {
		if s == "" {
			return none
		}
		n, err := strconv.Atoi(s)
		if err != nil || n > maxCount {
			p.fail("a count above " + strconv.Itoa(maxCount))
		}
		return n
	}
	l.lo = num(lo, 0)
	if l.hi = l.lo; two {
		l.hi = num(hi, -1)
	}
	if l.hi >= 0 && l.hi < l.lo {
		p.fail("a count whose end is below its start")
	}
	p.at += len(body) + 2
	return true
}

func (p *parser) atom(depth int, fold bool) *node {
	if p.take("(") {
		return p.group(depth+1, fold)
	}
	if p.take("[") {
		return &node{kind: nClass, set: p.class(fold, 0)}
	}
	switch r := p.rune(); r {
	case '.':
		c := single('\n', false)
		c.flip()
		return &node{kind: nClass, set: c}
	case '^':
		return &node{kind: nBegin}
	case '$':
		return &node{kind: nEnd}
	case '*', '+', '?':
		p.fail("a `" + string(r) + "` with nothing before it")
	case '\\':
		switch {
		case p.take("A"):
			return &node{kind: nBegin}
		case p.take("z"):
			return &node{kind: nEnd}
		}
		c := &class{}
		if r, one := p.escape(c); one {
			c = single(r, fold)
		}
		return &node{kind: nClass, set: c}
	default:
		return &node{kind: nClass, set: single(r, fold)}
	}
	return nil
}

func (p *parser) group(depth int, fold bool) *node {
	n := &node{}
	switch {
	case p.take("?="):
		n.kind = nAhead
	case p.take("?!"):
		n.kind, n.neg = nAhead, true
	case p.take("?<="):
		n.kind = nBehind
	case p.take("?<!"):
		n.kind, n.neg = nBehind, true
	case p.take("?>"):
		n.kind, n.atomic, n.lo, n.hi = nLoop, true, 1, 1
	case p.take("?:"):
	case p.take("?i:"):
		fold = true
	case p.peek("?"):
		p.fail("a group of this kind is not read")
	}
	body := p.alternatives(depth, fold)
	if !p.take(")") {
		p.fail("a `(` without `)`")
	}
	switch n.kind {
	case nEmpty:
		return body
	case nBehind:
		n.set = oneClass(body)
		if n.set == nil {
			p.fail("lookbehind is read for one character only")
		}
	}
	n.parts = []*node{body}
	return n
}

// oneClass is the class of a node that matches one character, nil for others.
func oneClass(n *node) *class {
	for (n.kind == nSeq || n.kind == nAlt) && len(n.parts) == 1 {
		n = n.parts[0]
	}
	if n.kind == nClass {
		return n.set
	}
	return nil
}

// class reads a bracket expression behind its `[`.
func (p *parser) class(fold bool, depth int) *class {
	c := &class{}
	neg := p.take("^")
	for first := true; ; first = false {
		if p.take("]") {
			if first {
				p.fail("an empty class")
			}
			break
		}
		if p.peek("&&") {
			p.fail("an intersection of classes is not read")
		}
		if p.peek("[") {
			p.fail("a class inside a class is not read")
		}
		lo, one := p.member(c)
		if !one {
			continue
		}
		hi := lo
		if p.peek("-") && !p.peek("-]") {
			p.at++
			if hi, one = p.member(&class{}); !one || hi < lo {
				p.fail("a range whose end is not a character after its start")
			}
		}
		c.addRange(lo, hi)
	}
	if fold {
		c.fold()
	}
	if neg {
		c.flip()
	}
	return c
}

// member reads a character of a class, or adds an escape that stands for several.
func (p *parser) member(c *class) (r rune, one bool) {
	if r = p.rune(); r != '\\' {
		return r, true
	}
	return p.escape(c)
}

// escape reads behind a backslash: one character, or a set that it adds to c.
func (p *parser) escape(c *class) (r rune, one bool) {
	switch r := p.rune(); r {
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	case 'f':
		return '\f', true
	case 'v':
		return '\v', true
	case 's', 'S':
		c.addTable(unicode.White_Space, r == 'S')
	case 'd', 'D':
		c.addTable(unicode.Nd, r == 'D')
	case 'w', 'W':
		c.addTable(words(), r == 'W')
	case 'p', 'P':
		c.addTable(p.property(r == 'P'))
	case 'x':
		if p.take("{") {
			return p.hex(strings.IndexByte(p.text[p.at:], '}'), 1), true
		}
		return p.hex(2, 0), true
	case 'u':
		if p.take("{") {
			return p.hex(strings.IndexByte(p.text[p.at:], '}'), 1), true
		}
		return p.hex(4, 0), true
	default:
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			p.fail("the escape `\\" + string(r) + "` is not read")
		}
		return r, true
	}
	return 0, false
}

// hex reads a character number of n digits and skips what closes it.
func (p *parser) hex(n, more int) rune {
	if n < 1 || p.at+n > len(p.text) {
		p.fail("a character number that is not closed")
	}
	v, err := strconv.ParseUint(p.text[p.at:p.at+n], 16, 32)
	if err != nil || v > unicode.MaxRune {
		p.fail("not the number of a character")
	}
	p.at += n + more
	return rune(v)
}

// property reads `{Name}`, `{^Name}` or one letter.
func (p *parser) property(neg bool) (*unicode.RangeTable, bool) {
	var name string
	if p.take("{") {
		n := strings.IndexByte(p.text[p.at:], '}')
		if n < 0 {
			p.fail("a `{` without `}`")
		}
		name = p.text[p.at : p.at+n]
		p.at += n + 1
	} else {
		name = string(p.rune())
	}
	if rest, ok := strings.CutPrefix(name, "^"); ok {
		name, neg = rest, !neg
	}
	t := tableOf(name)
	if t == nil {
		p.fail("the property `" + name + "` is not known")
	}
	return t, neg
}

// single is the set of one character, or of all its cases.
func single(r rune, fold bool) *class {
	c := &class{}
	c.addRange(r, r)
	if fold {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			c.addRange(f, f)
		}
	}
	return c
}
