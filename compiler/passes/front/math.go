package front

import (
	"math"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/runtime/op"
)

// sqrt gives a float.
func (s *State) sqrt(e *ast.Call, x op.Value) (op.Value, bool) {
	if x.Num() < 0 {
		s.errorf(codeConstOp, e.Span, "the square root of %s is not a number", x)
		return op.Value{}, false
	}
	return op.Value{Kind: op.VFloat, Float: math.Sqrt(x.Num())}, true
}

// ceil rounds n up to a multiple of m.
func (s *State) ceil(e *ast.Call, n, m int64) (op.Value, bool) {
	switch {
	case m == 0:
		s.errorf(codeZero, e.Span, "`ceil(%d, 0)`: no multiple of 0 is as large", n)
		return op.Value{}, false
	case m < 0:
		s.errorf(codeRange, e.Span, "`ceil` rounds up to a multiple of a positive int, not of %d", m)
		return op.Value{}, false
	}
	r := n % m
	if r < 0 {
		r += m
	}
	if r == 0 {
		return op.Value{Kind: op.VInt, Int: n}, true
	}
	if n > math.MaxInt64-(m-r) {
		s.errorf(codeOverflow, e.Span, "`ceil(%d, %d)` does not fit 63 bits", n, m)
		return op.Value{}, false
	}
	return op.Value{Kind: op.VInt, Int: n + (m - r)}, true
}
