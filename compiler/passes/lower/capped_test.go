package lower

import (
	"slices"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
)

var limit = attrs{"cap": *op.FloatValue(1.5)}

// cappedHeads are heads with soft caps, and how many of them are left in the loss.
var cappedHeads = map[string]struct {
	made func(h *unitBuilder, x *ir.Value) *ir.Value
	caps int // in generation
	left int // in the loss
}{
	"a cap of a linear": {func(h *unitBuilder, x *ir.Value) *ir.Value {
		return h.op("softcap", "", limit, h.linear("head", 12, x))
	}, 1, 0},
	"a cap of a cap": {func(h *unitBuilder, x *ir.Value) *ir.Value {
		return h.op("softcap", "", limit, h.op("softcap", "", limit, h.linear("head", 12, x)))
	}, 2, 1},
	"a cap of what is read besides": {func(h *unitBuilder, x *ir.Value) *ir.Value {
		y := h.linear("head", 12, x)
		return h.add(h.op("softcap", "", limit, y), y)
	}, 1, 1},
	"a cap before the linear": {func(h *unitBuilder, x *ir.Value) *ir.Value {
		return h.linear("head", 12, h.op("softcap", "", limit, x))
	}, 1, 1},
	"a cap of the input": {func(h *unitBuilder, x *ir.Value) *ir.Value { return h.op("softcap", "", limit, x) }, 1, 1},
}

func cappedModel(t *testing.T, made func(h *unitBuilder, x *ir.Value) *ir.Value) *ir.Model {
	mb := newModel(t, 4, 6, 12)
	e := mb.unit(ir.EmbedUnit, "embed", -1)
	x := e.out(e.embed("wte", 12, 12, e.in(mb.tokens)))
	h := mb.unit(ir.HeadUnit, "head", -1)
	h.out(made(h, h.in(x)))
	return spans(mb.m)
}

func init() {
	for name, c := range cappedHeads {
		models["heads of logits: "+name] = func(t *testing.T) *ir.Model { return cappedModel(t, c.made) }
	}
}

// TestCappedLoss: the loss takes a soft cap along where the cap makes its logits alone, of what a chunk makes;
// generation keeps the op.
func TestCappedLoss(t *testing.T) {
	for name, c := range cappedHeads {
		p := mustLower(t, cappedModel(t, c.made), small)
		i := slices.IndexFunc(p.Templates, func(t *ir.Template) bool { return t.Name == "head" })
		for kind, want := range map[plan.Func]int{plan.Infer: c.caps, plan.EvalLoss: c.left, plan.Loss: 2 * c.left} {
			got := 0
			for _, l := range launches(p.Templates[i].Funcs[kind].Body) {
				if strings.HasPrefix(l, "softcap.") {
					got++
				}
			}
			if got != want {
				t.Errorf("%s: %d launches of caps in %s, want %d", name, got, kind, want)
			}
		}
	}
}
