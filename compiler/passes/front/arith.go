package front

import (
	"math"
	"math/bits"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
)

// Operators on constants (rule 1 of the language): ints are exact and checked, a float
// operand makes the result a float64.

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
