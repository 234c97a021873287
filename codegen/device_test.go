package codegen

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/megatrain/mtc/compiler"
)

// TestTemplatesAreTheSameForEveryDevice: element types, sizes and offsets stand in plan_gen.go
// alone. The last model's logits fit a GPU in one chunk and a processor in several.
func TestTemplatesAreTheSameForEveryDevice(t *testing.T) {
	for _, o := range []compiler.Options{
		{Path: "../models/nano.mt"},
		{Path: "testdata/window.mt", Recompute: "all"},
		{Path: "testdata/window.mt", Placement: "stream", MicroBatch: 4},
	} {
		want := generate(t, compile(t, o))
		for _, precision := range []string{"bf16", "f32"} {
			g := o
			g.Target, g.Set = "cuda", []string{"train.precision=" + precision}
			in := compile(t, g)
			if in.Plan.Precision != precision {
				t.Errorf("%s: the plan computes in %s", o.Path, in.Plan.Precision)
			}
			for name, text := range generate(t, in) {
				if name == "main.go" {
					continue
				}
				diff := cmp.Diff(strings.Split(string(want[name]), "\n"), strings.Split(string(text), "\n"))
				if same := diff == ""; same != (name != "plan_gen.go") {
					t.Errorf("%s, %s: %s is the same: %t\n%s", o.Path, precision, name, same, diff)
				}
			}
		}
	}
}
