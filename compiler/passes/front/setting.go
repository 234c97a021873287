package front

import (
	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/parser"
	"github.com/megatrain/mtc/lang/source"
)

// setName is the name of the sources that --set values come from, for messages.
const setName = "--set"

// parseSetting parses a --set with the grammar of a train field, whose value takes
// everything a parameter takes, and a unit.
func (s *State) parseSetting(name, value string) *setting {
	f := parser.ParseField(source.New(setName, []byte(name+" = "+value)), s.Diags)
	if f == nil {
		return nil
	}
	return &setting{key: f.Name, value: f.Value, unit: f.Unit}
}

// field returns the setting as a field of the train block.
func (t *setting) field() *ast.Field {
	f := &ast.Field{Span: t.key.Span.To(t.value.Pos()), Name: t.key, Value: t.value, Unit: t.unit}
	return f
}
