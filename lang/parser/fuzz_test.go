package parser

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
)

// FuzzParse: no text makes the parser panic, every finding has a code, a message and a span
// in the file, and a text without findings has a tree whose spans lie in the file.
func FuzzParse(f *testing.F) {
	names, err := filepath.Glob("testdata/*.mt")
	if err != nil || len(names) == 0 {
		f.Fatalf("no samples: %v", err)
	}
	for _, n := range names {
		text, err := os.ReadFile(n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, c := range slips {
		f.Add([]byte(wrap(c.in, c.text)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file := source.New("fuzz.mt", text)
		var l diag.List
		tree := Parse(file, &l)
		if tree == nil {
			t.Fatal("no tree")
		}
		for _, d := range l.Sorted() {
			s := d.Span()
			if d.Code == "" || d.Message == "" || s.File != file || s.Start < 0 || s.Start > s.End || s.End > len(text) {
				t.Errorf("bad finding %q %q [%d, %d) of %d", d.Code, d.Message, s.Start, s.End, len(text))
			}
		}
		for _, style := range []diag.Style{diag.Text, diag.Short, diag.JSON} {
			var b bytes.Buffer
			diag.Render(&b, &l, style)
			if l.Len() > 0 && b.Len() == 0 {
				t.Errorf("%s prints nothing", style)
			}
		}
		var b bytes.Buffer
		ast.Dump(&b, tree, true)

		var le, lf diag.List
		if e := ParseExpr(file, &le); (e == nil) != (le.Len() > 0) {
			t.Errorf("ParseExpr: tree %v, findings %v", e, le.Err())
		}
		if e := ParseField(file, &lf); (e == nil) != (lf.Len() > 0) {
			t.Errorf("ParseField: tree %v, findings %v", e, lf.Err())
		}
	})
}
