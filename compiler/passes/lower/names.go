package lower

import (
	"go/token"
	"strings"
	"unicode"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/ops/all"
)

// reservedIdents are names that generated functions use themselves, or that would hide what
// they need.
var reservedIdents = func() map[string]bool {
	r := map[string]bool{}
	for _, n := range []string{"b", "queue", "row", "rows", "device", "engine", "plan", "program", "min", "int64", "nil", "true", "false", "weights", "grads"} {
		r[n] = true
	}
	for _, d := range all.All() {
		r[d.Name] = true
	}
	return r
}()

// uniqueIdent makes a Go identifier of a name in the text and takes it. "q.inv" becomes
// qInv, "d.x" becomes dX; a second x becomes x2.
func uniqueIdent(name string, taken map[string]bool) string {
	s := ident(name)
	if reservedIdents[s] || token.IsKeyword(s) {
		s += "Out"
	}
	return unusedName(s, taken)
}

// gradIdent names a gradient after its value; a second one, before or after something is
// added, gets a letter: dX, dXb, dXc. (x2 is another value than x, and dX2 its gradient.)
func gradIdent(of string, taken map[string]bool) string {
	base := ident("d." + of)
	s := base
	for letter := 'b'; taken[s] && letter <= 'z'; letter++ {
		s = base + string(letter)
	}
	return unusedName(s, taken)
}

// resultName names the result of an op: the variable it was bound to, or, when the text
// gives it none, the op after its first operand: qRope.
func resultName(n *ir.Node) string {
	op := n.Call.Def.Name
	if n.Out.Name != op || len(n.Inputs) == 0 {
		return n.Out.Name
	}
	return n.Inputs[0].Name + "." + op
}

func ident(name string) string {
	var s strings.Builder
	upper := false
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			upper = s.Len() > 0
		case upper:
			s.WriteRune(unicode.ToUpper(r))
			upper = false
		default:
			s.WriteRune(r)
		}
	}
	out := s.String()
	if out == "" || unicode.IsDigit(rune(out[0])) {
		out = "v" + out
	}
	return strings.ToLower(out[:1]) + out[1:]
}
