package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestModelsAreFormatted: what stands in models/ shows the canonical layout.
func TestModelsAreFormatted(t *testing.T) {
	names, err := filepath.Glob("../../models/*.mt")
	if err != nil || len(names) == 0 {
		t.Fatalf("no models: %v", err)
	}
	for _, n := range names {
		text, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		out, err := formatText(n, text)
		if err != nil {
			t.Error(err)
		} else if d := cmp.Diff(string(text), string(out)); d != "" {
			t.Errorf("%s: `mtc fmt -w` would change it:\n%s", n, d)
		}
	}
}
