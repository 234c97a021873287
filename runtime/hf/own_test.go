package hf

import (
	"testing"

	"github.com/megatrain/mtc/runtime/plan"
)

// TestEntriesLeaveAdaptersOut: adapters on a mixture of this project's own are in no folder that it exports.
func TestEntriesLeaveAdaptersOut(t *testing.T) {
	p := &plan.Plan{
		LoRA: plan.LoRA{Rank: 2, Alpha: 4}, Routers: make([]plan.Router, 1),
		Slabs: []plan.Slab{
			{Frozen: true, Params: []plan.Param{{Name: "layer[0].q.weight"}, {Name: "layer[0].moe.router.weight"}}},
			{Params: []plan.Param{{Name: "layer[0].q.lora_a.weight"}, {Name: "layer[0].q.lora_b.weight"}}},
		},
	}
	if got := Entries(p); len(got) != 2 || got[0].Names[0] != "layer[0].q.weight" || got[1].Params[0] != "layer[0].moe.router.weight" {
		t.Errorf("%+v", got)
	}
	if p.LoRA = (plan.LoRA{}); len(Entries(p)) != 4 {
		t.Errorf("without adapters: %+v", Entries(p))
	}
}
