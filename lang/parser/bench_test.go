package parser

import (
	"strings"
	"testing"

	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
)

func BenchmarkParse(b *testing.B) {
	text := "model m(D = 1) {\n  block b(x) {\n" + strings.Repeat("    y = a + b * 3\n    x += o: linear(a, D, bias, init = normal(0.02 / sqrt(2 * L)))\n", 1000) + "  }\n}\n"
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var l diag.List
		Parse(source.New("m.mt", []byte(text)), &l)
		if l.Len() > 0 {
			b.Fatal(l.Err())
		}
	}
}
