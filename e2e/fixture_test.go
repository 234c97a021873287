// Package e2e tests whole programs: .mt text compiled, built and run.
package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
)

// fixture is a whole-model fixture made by tools/fixtures/models.py.
type fixture struct {
	*safetensors.File
	about struct {
		Train map[string]float64
		HF    map[string][]int64
	}
}

func fixturePath(name, ext string) string {
	return filepath.Join("testdata", "fixtures", name+ext)
}

func fixtureNames(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(fixturePath("*", ".safetensors"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	var out []string
	for _, p := range paths {
		out = append(out, strings.TrimSuffix(filepath.Base(p), ".safetensors"))
	}
	return out
}

func openFixture(t *testing.T, name string) *fixture {
	t.Helper()
	f, err := safetensors.Open(fixturePath(name, ".safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	out := &fixture{File: f}
	if err := json.Unmarshal([]byte(f.Meta["fixture"]), &out.about); err != nil {
		t.Fatal(err)
	}
	return out
}
