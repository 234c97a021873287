package ir

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestNames: lists of names as they are written, what they stand for, and how that is written again.
func TestNames(t *testing.T) {
	for _, c := range []struct{ list, names, again string }{
		{"wte", "wte", "wte"},
		{"layer", "layer", "layer"},
		{"layer[3]", "layer[3]", "layer[3]"},
		{"layer[0..3]", "layer[0] layer[1] layer[2] layer[3]", "layer[0..3]"},
		{"wte,layer[2],layer[0],layer[1],head", "wte layer[2] layer[0] layer[1] head", "wte,layer[0..2],head"},
		{"layer[0,1,3..5]", "layer[0] layer[1] layer[3] layer[4] layer[5]", "layer[0,1,3..5]"},
		{"layer[0..2].experts, layer[1]", "layer[0].experts layer[1].experts layer[2].experts layer[1]", "layer[0..2].experts,layer[1]"},
		{"layer[0,\n  2]", "layer[0] layer[2]", "layer[0,2]"},
		{"layer[1,1]", "layer[1] layer[1]", "layer[1]"},
		// What is no range stays as it is written, to be refused by that name.
		{"layer[3..1]", "layer[3..1]", "layer[3..1]"},
		{"layer[0..", "layer[0..", "layer[0.."},
		{"layer[-1..2]", "layer[-1..2]", "layer[-1..2]"},
		{"layer[0..99999999]", "layer[0..99999999]", "layer[0..99999999]"},
		{"layer[x],", "layer[x] ", "layer[x],"},
	} {
		got := ExpandNames(c.list)
		if x := strings.Join(got, " "); x != c.names {
			t.Errorf("%q: %q, want %q", c.list, x, c.names)
		}
		if x := JoinNames(got); x != c.again {
			t.Errorf("%q: written again %q, want %q", c.list, x, c.again)
		}
	}
	// Of any set of layers, what is written stands for the same.
	for set := range 1 << 8 {
		var names []string
		for i := range 8 {
			if set>>i&1 == 1 {
				names = append(names, fmt.Sprintf("block[%d].w", i+set%5))
			}
		}
		if got := ExpandNames(JoinNames(names)); set > 0 && !slices.Equal(got, names) {
			t.Errorf("%v became %v", names, got)
		}
	}
}
