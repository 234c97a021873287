package front

import (
	"math"
	"math/bits"

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

func (s *State) unary(e *ast.Unary, x op.Value) (op.Value, bool) {
	switch {
	case e.Op == "not" && x.Kind == op.VBool:
		return op.Value{Kind: op.VBool, Bool: !x.Bool}, true
	case e.Op == "-" && x.Kind == op.VInt:
		if x.Int == math.MinInt64 {
			s.overflow(e.Span, "-", x, x)
			return op.Value{}, false
		}
		return op.Value{Kind: op.VInt, Int: -x.Int}, true
	case e.Op == "-" && x.Kind == op.VFloat:
		return op.Value{Kind: op.VFloat, Float: -x.Float}, true
	}
	want := "a number"
	if e.Op == "not" {
		want = "true or false"
	}
	s.errorf(codeConstOp, e.Span, "`%s` takes %s, not %s", e.Op, want, describe(x))
	return op.Value{}, false
}

func isNumber(v op.Value) bool { return v.Kind == op.VInt || v.Kind == op.VFloat }

func (s *State) binary(e *ast.Binary, x, y op.Value) (op.Value, bool) {
	switch e.Op {
	case "==", "!=":
		eq, ok := equal(x, y)
		if !ok {
			s.errorf(codeConstOp, e.Span, "`%s` compares %s with %s", e.Op, describe(x), describe(y)).
				Hint("the two sides need to be of one kind; `none` compares with anything")
			return op.Value{}, false
		}
		return op.Value{Kind: op.VBool, Bool: eq == (e.Op == "==")}, true
	}
	if !isNumber(x) || !isNumber(y) {
		bad, at := x, e.X
		if isNumber(x) {
			bad, at = y, e.Y
		}
		s.errorf(codeConstOp, at.Pos(), "`%s` takes numbers, not %s", e.Op, describe(bad))
		return op.Value{}, false
	}
	switch e.Op {
	case "<", "<=", ">", ">=":
		return op.Value{Kind: op.VBool, Bool: ordered(e.Op, x, y)}, true
	}
	if x.Kind == op.VInt && y.Kind == op.VInt {
		return s.intOp(e, x, y)
	}
	return s.floatOp(e, x.Num(), y.Num())
}

// equal compares two constants; ok is false when their kinds do not compare.
func equal(x, y op.Value) (eq, ok bool) {
	switch {
	case x.Kind == op.VNone || y.Kind == op.VNone:
		return x.Kind == y.Kind, true
	case x.Kind == op.VInt && y.Kind == op.VInt:
		return x.Int == y.Int, true
	case isNumber(x) && isNumber(y):
		return x.Num() == y.Num(), true
	case isWordLike(x) && isWordLike(y):
		return x.String() == y.String(), true
	case x.Kind != y.Kind:
		return false, false
	case x.Kind == op.VBool:
		return x.Bool == y.Bool, true
	}
	return x.String() == y.String(), true
}

func isWordLike(v op.Value) bool { return v.Kind == op.VWord || v.Kind == op.VCall }

func ordered(o string, x, y op.Value) bool {
	if x.Kind == op.VInt && y.Kind == op.VInt {
		switch o {
		case "<":
			return x.Int < y.Int
		case "<=":
			return x.Int <= y.Int
		case ">":
			return x.Int > y.Int
		}
		return x.Int >= y.Int
	}
	switch o {
	case "<":
		return x.Num() < y.Num()
	case "<=":
		return x.Num() <= y.Num()
	case ">":
		return x.Num() > y.Num()
	}
	return x.Num() >= y.Num()
}

// intOp is checked 64-bit arithmetic; a division must be exact.
func (s *State) intOp(e *ast.Binary, x, y op.Value) (op.Value, bool) {
	a, b := x.Int, y.Int
	var r int64
	ok := true
	switch e.Op {
	case "+":
		r = a + b
		ok = (r > a) == (b > 0)
	case "-":
		r = a - b
		ok = (r < a) == (b > 0)
	case "*":
		r, ok = mul(a, b)
	case "/", "%":
		if b == 0 {
			s.errorf(codeZero, e.Span, "%s divides by zero", quoteOp(e, x, y)).Mark("%s", zeroNote(e, y))
			return op.Value{}, false
		}
		if a == math.MinInt64 && b == -1 {
			ok = false
			break
		}
		if e.Op == "%" {
			r = a % b
			break
		}
		if a%b != 0 {
			s.errorf(codeRest, e.Span, "%d / %d leaves a rest of %d", a, b, a%b).
				Mark("%s", quoteOp(e, x, y)).
				Hint("an int division must be exact; write `%d.0 / %d` for a float, or `ceil(n, m)` to round up to a multiple", a, b)
			return op.Value{}, false
		}
		r = a / b
	}
	if !ok {
		s.overflow(e.Span, e.Op, x, y)
		return op.Value{}, false
	}
	return op.Value{Kind: op.VInt, Int: r}, true
}

// mul multiplies with a check.
func mul(a, b int64) (int64, bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	ua, ub := magnitude(a), magnitude(b)
	hi, lo := bits.Mul64(ua, ub)
	neg := (a < 0) != (b < 0)
	switch {
	case hi != 0 || lo > 1<<63 || lo == 1<<63 && !neg:
		return 0, false
	case neg:
		return -int64(lo), true
	}
	return int64(lo), true
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

func (s *State) overflow(at source.Span, o string, x, y op.Value) {
	s.errorf(codeOverflow, at, "%s %s %s does not fit 63 bits", x, o, y).
		Hint("ints are at most 9223372036854775807; a float operand makes the result a float")
}

func (s *State) floatOp(e *ast.Binary, a, b float64) (op.Value, bool) {
	var r float64
	switch e.Op {
	case "+":
		r = a + b
	case "-":
		r = a - b
	case "*":
		r = a * b
	case "%":
		s.errorf(codeConstOp, e.Span, "`%%` takes ints")
		return op.Value{}, false
	case "/":
		if b == 0 {
			s.errorf(codeZero, e.Span, "`%s` divides by zero", e.Span.Text())
			return op.Value{}, false
		}
		r = a / b
	}
	return s.finite(e.Span, r)
}

func (s *State) finite(at source.Span, r float64) (op.Value, bool) {
	if math.IsInf(r, 0) || math.IsNaN(r) {
		s.errorf(codeOverflow, at, "`%s` is too large for a float", at.Text())
		return op.Value{}, false
	}
	return op.Value{Kind: op.VFloat, Float: r}, true
}

// quoteOp writes an operation with names and values: "`D / H` = 768 / 0".
func quoteOp(e *ast.Binary, x, y op.Value) string {
	text := e.Span.Text()
	plain := x.String() + " " + e.Op + " " + y.String()
	if text == plain || text == "" {
		return plain
	}
	return "`" + text + "` = " + plain
}

func zeroNote(e *ast.Binary, y op.Value) string {
	if id, ok := e.Y.(*ast.Ident); ok {
		return id.Name + " is " + y.String()
	}
	return ""
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

// exceed reports a limit, once: nothing more is evaluated after it.
func (s *State) exceed(at source.Span, format string, args ...any) {
	if !s.spent {
		s.errorf(codeTooMany, at, format, args...)
	}
	s.spent = true
}
