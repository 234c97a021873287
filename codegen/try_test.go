package codegen

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/lang/diag"
)

func TestTry(t *testing.T) {
	path := os.Getenv("TRY")
	if path == "" {
		t.Skip()
	}
	var diags diag.List
	start := time.Now()
	r, err := compiler.Compile(context.Background(), compiler.Options{Path: path, Placement: os.Getenv("PLACE")}, &diags)
	for _, d := range diags.Sorted() {
		t.Log(d.Span(), d.Message)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Log("compiled", time.Since(start), "tasks", len(r.Plan.Tasks), "buffers", len(r.Plan.Buffers))
	start = time.Now()
	mod, err := FindModule("")
	if err != nil {
		t.Fatal(err)
	}
	files, err := Generate(Input{Program: r.Program, Plan: r.Plan, Module: mod})
	if err != nil {
		t.Fatal(err)
	}
	t.Log("generated", time.Since(start))
	dir := "/tmp/cg/" + r.Program.Model.Name
	os.MkdirAll(dir, 0o755)
	for n, b := range files {
		os.WriteFile(filepath.Join(dir, n), b, 0o644)
	}
	start = time.Now()
	bin, err := Build(context.Background(), dir, r.Program.Model.Name)
	t.Log(bin, err, time.Since(start))
}
