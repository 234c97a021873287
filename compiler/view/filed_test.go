package view

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/plan"
)

// mixed is small with experts in place of the linears, and untied.
var mixed = strings.NewReplacer(
	"block layer", "block expert(x) { return down: linear(gelu(up: linear(x, 2 * D)), D) }\n  block layer",
	"down: linear(gelu(up: linear(ln: layernorm(x), 4 * D)), D)", "moe: moe(ln: layernorm(x), experts = 4, expert = expert, router = topk(k = 2))",
	", tie = wte", "",
).Replace(small)

// TestFilesTakeAsLongAsPlans: every task of every list takes as long by a schedule that was written and read as by the plan
// itself, so that inspect, compare and diff say what the planner found.
func TestFilesTakeAsLongAsPlans(t *testing.T) {
	for _, text := range []string{small, mixed} {
		for _, o := range []compiler.Options{
			{Placement: "resident"},
			{Placement: "resident", MicroBatch: 2},
			{Placement: "resident", MicroBatch: 2, Groups: 1, Recompute: "all", Set: []string{"train.clip=none"}},
			{Placement: "stream", MicroBatch: 2},
			{Placement: "stream", MicroBatch: 1, Groups: 4, Recompute: "all"},
			{Placement: "stream", MicroBatch: 2, Groups: 2, GradHome: "device", Set: []string{"train.clip=none"}},
			{Placement: "stream", MicroBatch: 2, GradPrecision: "bf16", Resident: "1"},
			{Placement: "stream", MicroBatch: 2, Resident: "layer[1]", Set: []string{"train.clip=none"}},
		} {
			for _, machine := range []*cost.Machine{Nominal(), cost.Shipped("rtx4090")} {
				o.Path, o.Text, o.Target = "small.mt", []byte(text), machine.Target
				var diags diag.List
				res, err := compiler.Compile(context.Background(), o, &diags)
				if err != nil {
					t.Fatal(o, err)
				}
				work := cost.WorkOf(res.Program)
				s, err := Compiled(res.Plan, work)
				if err != nil {
					t.Fatal(err)
				}
				names := map[string]bool{}
				for _, b := range s.File.Buffers {
					if names[b.Name] {
						t.Errorf("%+v on %s: there are two buffers %s", o, machine.Name, b.Name)
					}
					names[b.Name] = true
				}
				for l := range plan.NumLists {
					want, err := cost.SimulateList(res.Plan, work, machine, l)
					if err != nil {
						t.Fatal(err)
					}
					got, err := cost.SimulateList(s.Plan, s.File.Work, machine, l)
					if err != nil {
						t.Fatal(err)
					}
					if math.Abs(got.Seconds-want.Seconds) > 1e-12 {
						t.Errorf("%s on %s, %s: %v by the file, %v by the plan", o.Placement, machine.Name, l, got.Seconds, want.Seconds)
					}
					for i := range want.Tasks {
						if got.Tasks[i].Seconds != want.Tasks[i].Seconds {
							t.Errorf("%s on %s, task %d of %s: %v by the file, %v by the plan", o.Placement, machine.Name, i, l, got.Tasks[i].Seconds, want.Tasks[i].Seconds)
							break
						}
					}
				}
			}
		}
	}
}
