package parser

import (
	"strings"
	"testing"
	"time"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/tools/cputime"
)

// TestHostileTexts gives the parser what could exhaust time or stack: each must come back
// soon, with an error that names the cause or with none.
func TestHostileTexts(t *testing.T) {
	block := func(body string) string { return "model m(D = 1) {\n  block b(x) {\n" + body + "\n  }\n}\n" }
	rep := strings.Repeat
	fill := func(unit string) string { return rep(unit, (MaxBytes-200)/len(unit)) }
	some := func(unit string) string { return rep(unit, (32<<10)/len(unit)) } // enough to show growth, quick to parse
	for _, c := range []struct{ name, text, code string }{
		{"10 MB", rep("x", 10<<20), "MT0104"},
		{"256 KiB and a byte", rep("\n", MaxBytes+1), "MT0104"},
		{"256 KiB of blanks", rep("\n", MaxBytes), ""},
		{"open parentheses", block("x = " + fill("(")), "MT0104"},
		{"open brackets", block("x = " + fill("[")), "MT0104"},
		{"open braces", fill("{"), "MT0104"},
		{"balanced parentheses", block("x = " + rep("(", 1000) + "1" + rep(")", 1000)), "MT0104"},
		{"nested calls", block("x = " + rep("f(", 1000) + "1" + rep(")", 1000)), "MT0104"},
		{"nested ifs", block(rep("if D {\n", 1000) + rep("}\n", 1000)), "MT0104"},
		{"else if chain", block("if D { }" + rep(" else if D { }", 1000)), "MT0104"},
		{"nested conditions", block("x = " + rep("if D then 1 else ", 1000) + "1"), "MT0104"},
		{"conditions in conditions", block("x = " + rep("if ", 1000)), "MT0104"},
		{"signs", block("x = " + fill("-") + "1"), "MT0104"},
		{"nots", block("x = " + fill("not ") + "D"), "MT0104"},
		{"operators", block("x = 1" + fill(" + 1")), "MT0104"},
		{"close brackets", block(fill(")")), "MT0108"},
		{"close braces", fill("}"), "MT0108"},
		{"long name", block("x = " + fill("y")), ""},
		{"long number", block("x = " + fill("9")), "MT0106"},
		{"long string", block(`x = f("` + fill("s") + `")`), ""},
		{"open strings", fill("\"\n"), "MT0105"},
		{"NUL bytes", fill("\x00"), "MT0103"},
		{"invalid UTF-8", fill("\xff a "), "MT0103"},
		{"many statements", block(some("y = a + b * 3\n")), ""},
		{"many statements on a line", block(some("y=a;")), ""},
		{"many bad statements", block(fill("= \n")), "MT0101"},
		{"many arguments", block("x = f(" + some("1, ") + "1)"), ""},
		{"many lines in a bracket", block("x = f(" + some("1,\n") + "1)"), ""},
		{"many unclosed brackets", block(fill("x = (\n")), "MT0104"},
		{"many missing commas", block("x = f(1\n" + fill("2\n") + ")"), "MT0102"},
		{"many models", some("model m() {}\n"), ""},
		{"many labels", block(fill("x: ")), "MT0111"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l diag.List
			var f *ast.File
			took := cputime.Of(func() { f = Parse(source.New("x.mt", []byte(c.text)), &l) })
			if f == nil {
				t.Fatal("no tree")
			}
			got := ""
			if l.Len() > 0 {
				got = l.Sorted()[0].Code
			}
			if got != c.code {
				t.Errorf("first code is %q, want %q (%v)", got, c.code, l.Err())
			}
			// Each takes a fraction of a second; the limit leaves room for a slow machine.
			if limit := 15 * time.Second; took > limit {
				t.Errorf("took %v, more than %v", took, limit)
			}
			if l.Len() > maxErrors {
				t.Errorf("%d findings, more than %d", l.Len(), maxErrors)
			}
		})
	}
}

// TestNestingLimit shows that the limit is where it is said to be: 200 is fine, 201 is refused.
func TestNestingLimit(t *testing.T) {
	for _, c := range []struct{ name, open, close string }{
		{"parentheses", "(", ")"},
		{"calls", "f(", ")"},
		{"conditions", "if a then 1 else ", ""},
		{"signs", "-", ""},
	} {
		for n, want := range map[int]bool{MaxDepth: true, MaxDepth + 1: false} {
			var l diag.List
			text := strings.Repeat(c.open, n) + "1" + strings.Repeat(c.close, n)
			e := ParseExpr(source.New("", []byte(text)), &l)
			if (e != nil) != want {
				t.Errorf("%d %s: accepted = %v, want %v (%v)", n, c.name, e != nil, want, l.Err())
			}
		}
	}
}

// TestManySiblings shows that what stands side by side is not counted as nesting.
func TestManySiblings(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"if statements", "model m() {\n block b(x) {\n" + strings.Repeat("if D { } else { }\n", 500) + "}\n}"},
		{"conditions in arguments", "model m() {\n block b(x) {\nx = f(" + strings.Repeat("if a then 1 else 2, ", 500) + "1)\n}\n}"},
		{"conditions in lines", "model m() {\n block b(x) {\n" + strings.Repeat("x = if a then 1 else 2\n", 500) + "}\n}"},
	} {
		var l diag.List
		Parse(source.New("x.mt", []byte(c.text)), &l)
		if err := l.Err(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
