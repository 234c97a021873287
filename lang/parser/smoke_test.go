package parser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
)

func TestSamples(t *testing.T) {
	names, _ := filepath.Glob("testdata/*.mt")
	for _, n := range names {
		text, _ := os.ReadFile(n)
		var l diag.List
		Parse(source.New(n, text), &l)
		for _, d := range l.Sorted() {
			t.Errorf("%s %s %s", d.Span(), d.Message, d.Help)
		}
	}
}
