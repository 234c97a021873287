// Package imports checks that dependencies between the folders run one way:
// cmd -> codegen -> compiler -> lang, compiler -> runtime/{tensor,op,ops,plan}; nothing under
// runtime imports upward, devices never import ops, the engine knows no op, and jennifer
// and participle each stay in one room.
package imports

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/megatrain/mtc/"

type pkg struct {
	ImportPath string
	Imports    []string
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = "../.."
	var out, errw bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errw
	if err := cmd.Run(); err != nil {
		t.Fatalf("go list: %v\n%s", err, errw.String())
	}
	var pkgs []pkg
	for dec := json.NewDecoder(&out); ; {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// rule forbids packages under From to import packages under To, unless under Except.
type rule struct {
	From   string
	To     []string
	Except []string
	Why    string
}

var rules = []rule{
	{From: "lang/", To: []string{"compiler", "codegen", "runtime", "cmd"}, Why: "lang is text and syntax only"},
	{From: "compiler/", To: []string{"codegen", "cmd", "runtime/device/cpu", "runtime/device/null", "runtime/engine", "runtime/program", "runtime/data", "runtime/checkpoint", "runtime/telemetry"},
		Why: "the compiler needs what ops and plans declare, not what runs them"},
	{From: "codegen/", To: []string{"cmd", "lang/parser", "runtime/engine", "runtime/program"}, Why: "codegen is Program -> source"},
	{From: "runtime/", To: []string{"lang", "compiler", "codegen", "cmd"}, Why: "nothing under runtime imports upward"},
	{From: "runtime/device", To: []string{"runtime/op", "runtime/ops", "runtime/engine", "runtime/plan"}, Why: "devices never import ops"},
	{From: "runtime/engine", To: []string{"runtime/op", "runtime/ops", "runtime/optim", "runtime/data", "runtime/checkpoint", "runtime/telemetry"},
		Why: "the engine knows no op, file or terminal"},
	{From: "", To: []string{"!github.com/dave/jennifer"}, Except: []string{"codegen"}, Why: "jennifer lives only in codegen"},
	{From: "", To: []string{"!github.com/alecthomas/participle"}, Except: []string{"lang/parser"}, Why: "participle lives only in lang/parser"},
}

func under(path string, dirs []string) bool {
	for _, d := range dirs {
		if path == strings.TrimSuffix(d, "/") || strings.HasPrefix(path, strings.TrimSuffix(d, "/")+"/") {
			return true
		}
	}
	return false
}

func TestImportsRunOneWay(t *testing.T) {
	for _, p := range list(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		for _, r := range rules {
			if r.From != "" && !under(from, []string{r.From}) || under(from, r.Except) {
				continue
			}
			for _, imp := range p.Imports {
				for _, to := range r.To {
					if ext, ok := strings.CutPrefix(to, "!"); ok && strings.HasPrefix(imp, ext) ||
						strings.HasPrefix(imp, module) && under(strings.TrimPrefix(imp, module), []string{to}) {
						t.Errorf("%s imports %s: %s", from, imp, r.Why)
					}
				}
			}
		}
	}
}

func TestNoGoFileStandsDirectlyInRuntime(t *testing.T) {
	for _, p := range list(t) {
		if p.ImportPath == module+"runtime" {
			t.Error("runtime/ holds a Go file: the name would shadow the standard library's package")
		}
	}
}
