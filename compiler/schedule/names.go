package schedule

import (
	"fmt"
	"strings"

	"github.com/megatrain/mtc/runtime/plan"
)

// TaskName describes a task for a person: "#212 steady backward layer[3] micro 1".
func TaskName(p *plan.Plan, t *plan.Task) string {
	var s strings.Builder
	fmt.Fprintf(&s, "#%d %s ", t.ID, t.List)
	if t.Kind == plan.Compute {
		s.WriteString(t.Func.String())
	} else {
		s.WriteString(t.Kind.String())
	}
	switch {
	case t.Slab >= 0 && t.Slab < len(p.Slabs):
		s.WriteString(" " + p.Slabs[t.Slab].Name)
	case t.Unit >= 0 && t.Unit < len(p.Units):
		s.WriteString(" " + p.Units[t.Unit].Name)
	}
	if t.Micro >= 0 {
		fmt.Fprintf(&s, " micro %d", t.Micro)
	}
	if t.Span > 0 && t.Span < len(p.Spans) {
		s.WriteString(" (" + p.Spans[t.Span] + ")")
	}
	return s.String()
}
