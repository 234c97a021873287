package lower

import (
	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/source"
)

// trainSpan is where values of the train block are reported.
func trainSpan(m *ir.Model) source.Span {
	if m.Train != nil && m.Train.Span.Valid() {
		return m.Train.Span
	}
	return m.Span
}
