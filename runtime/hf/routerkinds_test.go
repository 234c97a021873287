package hf

import (
	"testing"

	"github.com/megatrain/mtc/runtime/plan"
)

// TestRouterKinds: what a router has learned is taken by one that reads it alike, and by no other.
func TestRouterKinds(t *testing.T) {
	for _, c := range []struct {
		there, here string
		ok          bool
	}{
		{"topk", "topk", true}, {"threshold", "threshold", true}, {"expert_choice", "threshold", true},
		{"topk", "threshold", false}, {"threshold", "topk", false}, {"expert_choice", "topk", false}, {"", "topk", true},
	} {
		f := &Folder{Config: object{"mtc_routers": []any{object{"name": "layer[1].moe", "kind": c.there}}}}
		err := f.RouterKinds(&plan.Plan{Routers: []plan.Router{{Name: "layer[1].moe", Kind: c.here}}})
		if (err == nil) != c.ok {
			t.Errorf("%s for %s: %v", c.there, c.here, err)
		}
	}
}

// TestSettableParameters: constants of routers, by which checkpoints are told apart, are nothing that --set takes.
func TestSettableParameters(t *testing.T) {
	got := ownSettings(object{"mtc_parameters": object{"D": "32", "layer[1].moe.first cutoff": "1.15", "layer[1].moe.rate": "0.1"}})
	if want := " --set D=32"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
