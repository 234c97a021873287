package front

import (
	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
)

// maxCallDepth bounds calls of constants inside calls of constants.
const maxCallDepth = 4

// scope holds constants by name, inner scopes first.
type scope struct {
	outer *scope
	vals  map[string]constant
	vars  map[string]*val // variables of the body: no constants, but known by name
}

// constant is a named value; bad means that its error was reported where it was made.
type constant struct {
	v   op.Value
	bad bool
}

func newScope(outer *scope) *scope { return &scope{outer: outer, vals: map[string]constant{}} }

func (sc *scope) lookup(name string) (constant, bool) {
	for ; sc != nil; sc = sc.outer {
		if c, ok := sc.vals[name]; ok {
			return c, true
		}
	}
	return constant{}, false
}

// variable finds a variable of the body.
func (sc *scope) variable(name string) *val {
	for ; sc != nil; sc = sc.outer {
		if v := sc.vars[name]; v != nil {
			return v
		}
	}
	return nil
}

// set binds a name. An int that has no name yet gets this one, for dims in messages.
func (sc *scope) set(name string, c constant) {
	if c.v.Kind == op.VInt && c.v.Dim == "" {
		c.v.Dim = name
	}
	sc.vals[name] = c
}

// eval evaluates a constant expression. It is false when the value is bad; the reason is
// then reported, here or earlier. p is the parameter the value goes to, nil when unknown:
// it decides what a bare word or a call may be.
func (s *State) eval(e ast.Expr, sc *scope, p *op.Param) (op.Value, bool) {
	if !s.step(e.Pos()) {
		return op.Value{}, false
	}
	if p != nil && p.Kind == namesKind {
		return s.evalNames(e)
	}
	switch e := e.(type) {
	case *ast.Int:
		return op.Value{Kind: op.VInt, Int: e.Value}, true
	case *ast.Float:
		return op.Value{Kind: op.VFloat, Float: e.Value}, true
	case *ast.Bool:
		return op.Value{Kind: op.VBool, Bool: e.Value}, true
	case *ast.None:
		return op.Value{}, true
	case *ast.String:
		return op.Value{Kind: op.VString, Str: e.Value}, true
	case *ast.Paren:
		return s.eval(e.X, sc, p)
	case *ast.Ident:
		return s.evalIdent(e, sc, p)
	case *ast.Cond:
		c, ok := s.evalCond(e.If, sc)
		if !ok {
			return op.Value{}, false
		}
		if c {
			return s.eval(e.Then, sc, p)
		}
		return s.eval(e.Else, sc, p)
	case *ast.Unary:
		x, ok := s.eval(e.X, sc, nil)
		if !ok {
			return op.Value{}, false
		}
		return s.unary(e, x)
	case *ast.Binary:
		return s.evalBinary(e, sc)
	case *ast.Call:
		return s.evalCall(e, sc, p)
	}
	return op.Value{}, false
}

// evalCond evaluates a condition, which must be a bool.
func (s *State) evalCond(e ast.Expr, sc *scope) (value, ok bool) {
	v, ok := s.eval(e, sc, nil)
	if !ok {
		return false, false
	}
	if v.Kind != op.VBool {
		d := s.errorf(codeType, e.Pos(), "a condition is true or false, this is %s", describe(v))
		switch v.Kind {
		case op.VInt:
			d.Hint("compare it: `%s != 0`", e.Pos().Text())
		case op.VNone:
			d.Hint("compare it: `%s != none`", e.Pos().Text())
		}
		return false, false
	}
	return v.Bool, true
}

func (s *State) evalIdent(e *ast.Ident, sc *scope, p *op.Param) (op.Value, bool) {
	if c, ok := sc.lookup(e.Name); ok {
		return c.v, !c.bad
	}
	if v := sc.variable(e.Name); v != nil {
		if !v.bad {
			s.errorf(codeNotConst, e.Span, "a constant is wanted here, and `%s` is a tensor", e.Name).
				Hint("sizes, conditions and options are constants: parameters and numbers")
		}
		return op.Value{}, false
	}
	if e.Name == "T" {
		s.noSeq(e.Span)
		return op.Value{}, false
	}
	if p != nil && p.Kind == op.BlockKind || p == nil && s.findBlock(e.Name) != nil && !s.isWord(e.Name, nil) {
		return s.evalBlock(&ast.Call{Callee: *e, Span: e.Span}, sc)
	}
	if s.isWord(e.Name, p) {
		return op.Value{Kind: op.VWord, Str: e.Name}, true
	}
	return op.Value{}, false // the names pass reported it
}

// evalBinary evaluates an operator. `and` and `or` look at the right side only when the
// left one leaves it open, so that `window != none and window > 0` works.
func (s *State) evalBinary(e *ast.Binary, sc *scope) (op.Value, bool) {
	if e.Op == "and" || e.Op == "or" {
		x, ok := s.evalCond(e.X, sc)
		if !ok {
			return op.Value{}, false
		}
		if x == (e.Op == "or") {
			return op.Value{Kind: op.VBool, Bool: x}, true
		}
		y, ok := s.evalCond(e.Y, sc)
		return op.Value{Kind: op.VBool, Bool: y}, ok
	}
	x, okx := s.eval(e.X, sc, nil)
	y, oky := s.eval(e.Y, sc, nil)
	if !okx || !oky {
		return op.Value{}, false
	}
	return s.binary(e, x, y)
}

// describe names a value with its kind, for messages.
func describe(v op.Value) string {
	switch v.Kind {
	case op.VInt:
		return "the int " + v.String()
	case op.VFloat:
		return "the float " + v.String()
	case op.VBool:
		return "`" + v.String() + "`"
	case op.VString:
		return "the string " + v.String()
	case op.VWord:
		return "the word `" + v.String() + "`"
	case op.VCall:
		return "`" + v.String() + "`"
	case op.VList:
		return "a list"
	case op.VBlock:
		return "the block `" + v.Str + "`"
	}
	return "`none`"
}

// maxSteps bounds the expressions evaluated in one compile; the largest models take thousands.
const maxSteps = 2_000_000

// step counts an expression; it is false when the model takes too many.
func (s *State) step(at source.Span) bool {
	if s.spent {
		return false
	}
	if s.steps++; s.steps > maxSteps {
		s.exceed(at, "the model takes more than %d steps to lay out", maxSteps)
	}
	return !s.spent
}

// exceed reports a limit, once: nothing more is evaluated after it. In a `repeat` it is that
// which makes so many, the outermost one; the place where the limit was met is shown with it.
func (s *State) exceed(at source.Span, format string, args ...any) {
	switch {
	case s.spent:
	case len(s.loops) > 0:
		s.errorf(codeTooMany, s.loops[0], format, args...).
			Mark("repeated here").
			Also(at, "the limit is met here")
	default:
		s.errorf(codeTooMany, at, format, args...)
	}
	s.spent = true
}
