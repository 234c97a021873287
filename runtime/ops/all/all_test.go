package all

import (
	"slices"
	"testing"

	"github.com/megatrain/mtc/runtime/ops/optest"
)

func TestEveryDeclaration(t *testing.T) {
	for _, d := range All() {
		t.Run(d.Name, func(t *testing.T) { optest.CheckDef(t, d) })
		if Lookup(d.Name) != d {
			t.Errorf("Lookup(%q) finds another op", d.Name)
		}
		if slices.Contains(Names(), d.Name) == d.Hidden {
			t.Errorf("%s: Hidden is %v, but Names has %v", d.Name, d.Hidden, Names())
		}
	}
	if Lookup("nothing") != nil {
		t.Error("an op that is not there was found")
	}
	if !slices.IsSorted(Names()) {
		t.Errorf("names are not sorted: %v", Names())
	}
}
