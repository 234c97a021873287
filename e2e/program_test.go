package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/megatrain/mtc/codegen"
	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/lang/diag"
)

// build compiles a model and builds its program in a fresh folder.
func build(t *testing.T, o compiler.Options) (binary string, res *compiler.Result) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build programs with")
	}
	var diags diag.List
	res, err := compiler.Compile(context.Background(), o, &diags)
	if err != nil {
		t.Fatal(err)
	}
	module, err := codegen.FindModule("")
	if err != nil {
		t.Fatal(err)
	}
	files, err := codegen.Generate(codegen.Input{Program: res.Program, Plan: res.Plan, Module: module})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if binary, err = codegen.Build(context.Background(), dir, res.Plan.Model); err != nil {
		t.Fatal(err)
	}
	return binary, res
}

// run runs a program and returns what it printed; it must end well.
func run(t *testing.T, binary string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Dir = t.TempDir()
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%s", filepath.Base(binary), args, err, &out)
	}
	return out.String()
}
