package parser

import (
	"strconv"

	"github.com/megatrain/mtc/lang/ast"
)

// Precedence of the binary operators, weakest first. `not` binds between `and` and the
// comparisons, a sign tighter than all, and `if c then a else b` weakest of all.
var precedence = map[string]int{
	"or": 1, "and": 2,
	"==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4,
	"+": 5, "-": 5,
	"*": 6, "/": 6, "%": 6,
}

// NotPrecedence is how tightly `not` binds.
const NotPrecedence = 3

const (
	notPrec  = NotPrecedence
	cmpPrec  = 4
	signPrec = 7
)

// Precedence returns how tightly a binary operator binds, 0 for none; higher is tighter. The
// formatter and the reference read it.
func Precedence(op string) int { return precedence[op] }

// expr makes the tree of an expression.
func (p *parser) expr(g *gExpr) ast.Expr {
	if g.Cond != nil {
		return &ast.Cond{
			Span: p.spanOf(g.Cond.Tokens), If: p.expr(g.Cond.If), Then: p.expr(g.Cond.Then), Else: p.expr(g.Cond.Else),
		}
	}
	c := &climber{parser: p, terms: []*gTerm{g.Chain.First}}
	for _, r := range g.Chain.Rest {
		c.ops = append(c.ops, r)
		c.terms = append(c.terms, r.Term)
	}
	return c.climb(0)
}

// climber turns a flat chain of operators into a tree by precedence climbing (Richards and
// Whitby-Strevens, BCPL, 1979).
type climber struct {
	*parser
	terms []*gTerm // one more than ops
	ops   []*gLink
	next  int // index of the next operator, and of the current term
	signs int // prefix operators of the current term taken so far
}

// climb reads a chain of operators that bind tighter than least, starting with a term.
func (c *climber) climb(least int) ast.Expr {
	x := c.operand(least)
	for c.next < len(c.ops) {
		link := c.ops[c.next]
		prec := precedence[link.Op]
		if prec <= least {
			break
		}
		opSpan := c.spanOf(link.Tokens[:1])
		if prec == cmpPrec {
			if b, ok := x.(*ast.Binary); ok && precedence[b.Op] == cmpPrec {
				c.errorf("MT0109", opSpan, "comparisons do not chain").
					Also(b.OpSpan, "the first one").Hint("write `a < b and b < c`")
			}
		}
		c.next++
		c.signs = 0
		y := c.climb(prec)
		x = &ast.Binary{Span: x.Pos().To(y.Pos()), Op: link.Op, OpSpan: opSpan, X: x, Y: y}
	}
	return x
}

// operand reads one term with its prefix operators.
func (c *climber) operand(least int) ast.Expr {
	t := c.terms[c.next]
	if c.signs == len(t.Prefix) {
		return c.primary(t)
	}
	op := t.Prefix[c.signs]
	span := c.spanOf(t.Tokens[c.signs : c.signs+1])
	c.signs++
	prec := signPrec
	if op == "not" {
		prec = notPrec
		if least > notPrec {
			c.errorf("MT0109", span, "`not` binds weaker than the operator before it").
				Hint("put it in parentheses: `(not x)`")
		}
	}
	x := c.climb(prec)
	return &ast.Unary{Span: span.To(x.Pos()), Op: op, X: x}
}

// primary makes a term without its prefix operators.
func (p *parser) primary(t *gTerm) ast.Expr {
	toks := t.Tokens[len(t.Prefix):]
	span := p.spanOf(toks)
	switch {
	case t.Int != "":
		v, _ := strconv.ParseInt(t.Int, 10, 64) // the scanner has checked it
		return &ast.Int{Span: span, Value: v}
	case t.Float != "":
		v, _ := strconv.ParseFloat(t.Float, 64)
		return &ast.Float{Span: span, Value: v, Text: t.Float}
	case t.Str != "":
		return &ast.String{Span: span, Value: unquote(t.Str)}
	case t.Word == "none":
		return &ast.None{Span: span}
	case t.Word != "":
		return &ast.Bool{Span: span, Value: t.Word == "true"}
	case t.Name != "":
		return &ast.Ident{Span: span, Name: t.Name}
	case t.List != nil:
		return p.list(t.List)
	case t.Paren != nil:
		return &ast.Paren{Span: span, X: p.expr(t.Paren.X)}
	}
	return p.call(t.Call)
}

// list makes a list, which the train block alone knows.
func (p *parser) list(g *gList) ast.Expr {
	l := &ast.List{Span: p.spanOf(g.Tokens)}
	if p.place != inTrain {
		p.errorf("MT0101", l.Span, "a list cannot stand here").Hint("lists are of names, in the train block; nothing is indexed")
	}
	for _, x := range g.Items {
		l.Items = append(l.Items, p.expr(x))
	}
	return l
}

func (p *parser) call(g *gCall) *ast.Call {
	c := &ast.Call{Span: p.spanOf(g.Tokens)}
	at := 0
	if g.Label != "" {
		l := p.nth(g.Tokens, 0)
		c.Label = &l
		at = 2
	}
	c.Callee = p.nth(g.Tokens, at)
	for _, a := range g.Args {
		arg := &ast.Arg{Span: p.spanOf(a.Tokens), Value: p.expr(a.Value)}
		if a.Name != "" {
			n := p.nth(a.Tokens, 0)
			arg.Name = &n
		}
		c.Args = append(c.Args, arg)
	}
	return c
}
