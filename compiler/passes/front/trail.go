package front

import (
	"fmt"
	"strings"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/source"
)

// trail is how a block was reached: its call, and the block that this call stands in, nil where that is
// forward. One text of a block stands for many calls of it, with other constants and widths; so an error in
// it also says of which call it is.
type trail struct {
	up     *trail
	call   source.Span
	block  *ast.Block
	unit   string   // path of the unit: "layer[3]"
	consts []string // "w = 64", as passed
}

// maxTrail bounds the calls that a note names, and maxPassed the constants of each.
const (
	maxTrail  = 4
	maxPassed = 6
)

// follow notes the call of a block, and the constants that it passes: those whose place is in given.
func (f *frame) follow(in *frame, call source.Span, given func(i int) bool) {
	b := in.block
	t := &trail{up: f.trail, call: call, block: b, unit: in.unit.unit.Path()}
	for i := range b.Params {
		name := b.Params[i].Name.Name
		if v, ok := in.consts.lookup(name); ok && given(i) && !v.bad && in.vars[name] == nil {
			t.consts = append(t.consts, fmt.Sprintf("%s = %s", name, v.v))
		}
	}
	if len(t.consts) > maxPassed {
		t.consts = append(t.consts[:maxPassed], "...")
	}
	in.trail = t
}

// note says the calls, the outermost first; "" where the text of the block says it all.
func (t *trail) note() string {
	var calls []string
	passed := false
	for ; t != nil; t = t.up {
		text := fmt.Sprintf("`%s` is called at %s", t.block.Name.Name, t.call)
		if t.up != nil {
			text = fmt.Sprintf("`%s` in it at %s", t.block.Name.Name, t.call)
		} else {
			text = fmt.Sprintf("in %s: %s", t.unit, text)
		}
		if len(t.consts) > 0 {
			text += " with " + strings.Join(t.consts, ", ")
			passed = true
		}
		calls = append([]string{text}, calls...)
	}
	if len(calls) < 2 && !passed {
		return ""
	}
	if n := len(calls); n > maxTrail {
		calls = append(calls[:maxTrail/2:maxTrail/2], append([]string{"..."}, calls[n-maxTrail/2:]...)...)
	}
	return strings.Join(calls, ", ")
}
