package front

import (
	"fmt"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
)

// unknownName is a name that nothing declares, said once: what is not declared is one slip,
// wherever it is used.
type unknownName struct {
	first *diag.Diagnostic
	more  []source.Span
}

type unknownKey struct {
	model *ast.Model
	what  string
}

// unknown reports a name of a model that nothing declares, where it stands first.
func (s *State) unknown(m *ast.Model, at source.Span, what string) *diag.Diagnostic {
	key := unknownKey{m, what}
	if u := s.unknowns[key]; u != nil {
		if at != u.first.Span() {
			u.more = append(u.more, at)
		}
		return &diag.Diagnostic{}
	}
	u := &unknownName{first: s.errorf(codeUnknown, at, "%s", what)}
	s.unknowns[key] = u
	return u.first
}

// noteUnknown says of each name that nothing declares in which lines else it stands.
func (s *State) noteUnknown() {
	for _, u := range s.unknowns {
		switch n := len(u.more); n {
		case 0:
		case 1:
			u.first.Also(u.more[0], "here too")
		default:
			u.first.Also(u.more[0], "here too")
			u.first.Note("it stands in %s more, the last one in %s", places(n-1), u.more[n-1].Line())
		}
	}
}

func places(n int) string {
	if n == 1 {
		return "one place"
	}
	return fmt.Sprintf("%d places", n)
}
