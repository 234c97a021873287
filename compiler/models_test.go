package compiler

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/tools/cputime"
)

// modelFiles lists the models that stand by themselves: all but the family file llama.mt,
// whose sizes its instances give.
func modelFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../models/*.mt")
	if err != nil || len(files) < 14 {
		t.Fatalf("%d models, %v", len(files), err)
	}
	var out []string
	for _, f := range files {
		if filepath.Base(f) != "llama.mt" {
			out = append(out, f)
		}
	}
	return out
}

// find compiles or checks and fails the test on any finding.
func find(t *testing.T, run func(context.Context, Options, *diag.List) (*Result, error), o Options) *Result {
	t.Helper()
	l := &diag.List{}
	r, err := run(context.Background(), o, l)
	if err != nil || l.Len() > 0 {
		var b strings.Builder
		diag.Render(&b, l, diag.Text)
		t.Fatalf("%s: %v\n%s", o.Path, err, b.String())
	}
	return r
}

// TestParameterCounts holds the models to their published sizes.
func TestParameterCounts(t *testing.T) {
	var b strings.Builder
	for _, path := range modelFiles(t) {
		presets := []string{""}
		if filepath.Base(path) == "gpt2.mt" {
			presets = append(presets, "medium", "large", "xl")
		}
		for _, p := range presets {
			m := find(t, Check, Options{Path: path, Preset: p}).Model
			name := m.Name
			if p != "" {
				name += " " + p
			}
			var mapped int
			for _, w := range m.Maps {
				mapped += len(w.Entries)
			}
			fmt.Fprintf(&b, "%-16s %15d parameters  %3d units  %4d tensors  %4d map entries  seq %d  batch %d\n",
				name, m.NumParams(), len(m.Units), len(m.Params), mapped, m.Seq, m.Batch)
		}
	}
	golden(t, "testdata/models.txt", b.String())
}

// TestModelsCompile compiles every model in both placements; the verifier runs in each.
func TestModelsCompile(t *testing.T) {
	for _, path := range modelFiles(t) {
		for _, placement := range []string{"resident", "stream"} {
			t.Run(filepath.Base(path)+"/"+placement, func(t *testing.T) {
				r := find(t, Compile, Options{Path: path, Placement: placement})
				if r.Plan == nil || len(r.Plan.Tasks) == 0 {
					t.Fatal("no plan")
				}
			})
		}
	}
}

// TestFrontHalfIsQuick bounds the front half of the largest models, generously for slow
// machines: it takes some 20 ms.
func TestFrontHalfIsQuick(t *testing.T) {
	for _, name := range []string{"qwen2.5-72b.mt", "dense-120b.mt"} {
		best := time.Hour
		for range 3 {
			best = min(best, cputime.Of(func() { find(t, Check, Options{Path: "../models/" + name}) }))
		}
		if best > 5*time.Second {
			t.Errorf("%s took %s", name, best)
		}
	}
}

// TestDeterministic shows that two compiles of one text give one dump after every pass.
func TestDeterministic(t *testing.T) {
	for _, p := range Passes() {
		o := Options{Path: "../models/nano.mt", DumpAfter: p.Name}
		a, b := find(t, Compile, o), find(t, Compile, o)
		if a.Dump != b.Dump {
			t.Errorf("after %s two compiles differ", p.Name)
		}
		if a.Dump == "" && p.Name != "ready" {
			t.Errorf("%s dumps nothing", p.Name)
		}
	}
}

// TestDumps holds the dumps of the front half to a golden.
func TestDumps(t *testing.T) {
	var b strings.Builder
	for _, p := range pipeline {
		if p.Back {
			continue
		}
		r := find(t, Check, Options{Path: "testdata/syntax.mt", DumpAfter: p.Name, Set: []string{"D=32"}})
		fmt.Fprintf(&b, "after %s: %s\n%s\n", p.Name, p.Doc, r.Dump)
	}
	golden(t, "testdata/dumps.txt", b.String())
}
