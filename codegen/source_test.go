package codegen

import (
	"testing"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/lang/source"
)

// TestSourceName: a name that go:embed takes for no file is another one in the generated program.
func TestSourceName(t *testing.T) {
	for name, want := range map[string]string{
		"dir/nano.mt": "nano.mt", "a-1.b.mt": "a-1.b.mt", "con.mt": "model.mt", "AUX.v2.mt": "model.mt", "lpt1.mt": "model.mt",
		"console.mt": "console.mt", "two words.mt": "model.mt", ".mt": "model.mt", "über.mt": "model.mt",
	} {
		g := &generator{Input: Input{Program: &ir.Program{Model: &ir.Model{File: &source.File{Name: name}}}}}
		if got := g.sourceName(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
