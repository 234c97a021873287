package invariants

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/memplan"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/plan"
)

// planOf compiles a family's model.
func planOf(t *testing.T, family string, o compiler.Options) *plan.Plan {
	t.Helper()
	o.Path = filepath.Join("testdata", "models", family+".mt")
	var diags diag.List
	res, err := compiler.Compile(context.Background(), o, &diags)
	if err != nil {
		t.Fatal(err)
	}
	return res.Plan
}

// TestMixedEqualsResident: a stream that fills half of the memory between a bare stream and
// all resident keeps some slabs on the device and changes no bit, with clipping and without.
func TestMixedEqualsResident(t *testing.T) {
	forEachFamily(t, func(t *testing.T, family string, args []string) {
		if family == "qwen" || family == "window" {
			return // built as llama and gpt2 are
		}
		for _, clip := range []string{"1.0", "none"} {
			o := compiler.Options{MicroBatch: 4, Groups: 1, Set: []string{"train.clip=" + clip}}
			all, _ := memplan.Peak(planOf(t, family, o))
			resident := train(t, program(t, family, o), out(t), args...)
			o.Placement, o.Slots, o.GradSlots = "stream", 1, 1
			bare, _ := memplan.Peak(planOf(t, family, o))
			o.DeviceMemory = (bare + all) / 2
			p := planOf(t, family, o)
			n := 0
			for _, s := range p.Slabs {
				if s.Resident {
					n++
				}
			}
			if n == 0 || n == len(p.Slabs) {
				t.Errorf("clip %s, %d bytes between %d and %d: %d of %d slabs stay", clip, o.DeviceMemory, bare, all, n, len(p.Slabs))
			}
			mixed := train(t, program(t, family, o), out(t), args...)
			same(t, fmt.Sprintf("clip %s, %d of %d slabs resident", clip, n, len(p.Slabs)), mixed, resident)
		}
	})
}
