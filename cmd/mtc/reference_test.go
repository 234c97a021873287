package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/megatrain/mtc/compiler/passes/front"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/parser"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/all"
)

// reference is the page whose generated parts this test keeps equal to the code.
const reference = "../../docs/reference/language.md"

// TestReference: each part between `<!-- generated: NAME -->` and `<!-- end -->` is what the
// code says. MTC_UPDATE=1 rewrites the parts.
func TestReference(t *testing.T) {
	text, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{
		"grammar":    "```\n" + parser.Grammar() + "```\n",
		"precedence": precedenceTable(),
		"ops":        opsTable(),
		"train":      trainTable(),
		"codes":      codesTable(),
		"reserved":   "`" + strings.Join(parser.Reserved, "` `") + "`\n",
		"limits": fmt.Sprintf("A file has at most %d KiB, nesting is at most %d deep, and an expression has at most %d operators outside of inner brackets.\n",
			parser.MaxBytes>>10, parser.MaxDepth, parser.MaxChain),
	}
	got := string(text)
	for name, part := range parts {
		start := "<!-- generated: " + name + " -->\n"
		i := strings.Index(got, start)
		if i < 0 {
			t.Errorf("no part %s", name)
			continue
		}
		j := strings.Index(got[i:], "<!-- end -->")
		if j < 0 {
			t.Fatalf("part %s has no end", name)
		}
		got = got[:i+len(start)] + part + got[i+j:]
	}
	if os.Getenv("MTC_UPDATE") != "" {
		if err := os.WriteFile(reference, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(string(text), got); d != "" {
		t.Errorf("docs/reference/language.md is not what the code says; MTC_UPDATE=1 rewrites it (-is +should be)\n%s", d)
	}
}

func precedenceTable() string {
	var b strings.Builder
	b.WriteString("| binds | operators |\n|---|---|\n| weakest | `if c then a else b` |\n")
	ops := []string{"or", "and", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%"}
	for prec := 1; ; prec++ {
		var row []string
		for _, o := range ops {
			if parser.Precedence(o) == prec {
				row = append(row, "`"+o+"`")
			}
		}
		if len(row) > 0 {
			fmt.Fprintf(&b, "| %d | %s |\n", prec, strings.Join(row, " "))
		} else if prec == parser.NotPrecedence {
			fmt.Fprintf(&b, "| %d | `not` |\n", prec)
		} else {
			fmt.Fprintf(&b, "| tightest | the sign `-` |\n")
			return b.String()
		}
	}
}

func opsTable() string {
	var b strings.Builder
	b.WriteString("| op | computes |\n|---|---|\n")
	for _, d := range all.All() {
		if !d.Hidden {
			fmt.Fprintf(&b, "| `%s` | %s |\n", signature(d), cell(d.Doc))
		}
	}
	return b.String()
}

func trainTable() string {
	var b strings.Builder
	b.WriteString("| field | default | unit | what |\n|---|---|---|---|\n")
	for _, f := range front.TrainFields() {
		def := "must be given"
		if f.Param.Default != nil {
			def = "`" + f.Param.Default.String() + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Param.Name, def, strings.Join(f.Units, ", "), cell(f.Param.Doc+ctors(&f.Param)))
	}
	return b.String()
}

// ctors lists the constructors of a parameter with their defaults.
func ctors(p *op.Param) string {
	var out []string
	for _, c := range p.Ctors {
		out = append(out, "`"+signature(&op.Def{Name: c.Name, Params: c.Params})+"`")
	}
	if out == nil {
		return ""
	}
	return ": " + strings.Join(out, ", ")
}

// cell escapes what a table cannot hold.
func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

func codesTable() string {
	var b strings.Builder
	b.WriteString("| code | what |\n|---|---|\n")
	for _, p := range diag.Pages() {
		fmt.Fprintf(&b, "| %s | %s |\n", p.Code, p.Title)
	}
	return b.String()
}

// TestReferenceExamples: what the reference shows as a whole file compiles and is in the
// canonical layout.
func TestReferenceExamples(t *testing.T) {
	text, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```mt\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("no examples")
	}
	for _, b := range blocks {
		code, _, _ := strings.Cut(b, "```")
		codes, findings := diagnose(t, diag.Example{Text: code})
		if codes != "" {
			t.Errorf("%s:\n%s\n%s", codes, code, findings)
		}
		out, err := formatText("example.mt", []byte(code))
		if err != nil {
			t.Errorf("%v:\n%s", err, code)
		} else if d := cmp.Diff(code, string(out)); d != "" {
			t.Errorf("not in the canonical layout (-is +should be):\n%s", d)
		}
	}
}
