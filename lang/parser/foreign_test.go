package parser

import (
	"strings"
	"testing"

	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
)

// What other languages write is an error at its place that says how it is written here.
func TestForeignSpellings(t *testing.T) {
	for _, c := range []struct{ text, at, hint string }{
		{"for i in range(3) { f(x) }", "for", "repeat n as i"},
		{"class f(x) { }", "class", "block NAME(x)"},
		{"import x", "import", "use \"file.mt\""},
		{"y = f(q[0:8])", "[0", "not indexed"},
		{"y = q[0]", "[0", "not indexed"},
		{"y = linear(h, D, tie = layer[0].q)", "[0", "`tie` takes a label"},
		{"y = nn.Linear(x)", ".Linear", "no module"},
		{"y = f(nn.Linear(x))", ".Linear", "no module"},
		{"y = f(c ? a : b)", "?", "if c then a else b"},
		{"y = x ** 2", "* 2", "no power"},
		{"y = f(x ** 2)", "** 2", "no power"},
		{"y = f(x /* text */)", "/*", "a comment is `//`"},
		{"x *= 2.0", "x *=", "write `x = x * ...`"},
		{"x -= y", "x -=", "write `x = x - ...`"},
		{"x /= y", "x /=", "write `x = x / ...`"},
		{"/* text */", "/*", "a comment is `//`"},
		{"y = f(x) /* text */", "* text", "a comment is `//`"},
		{"# text", "#", "starts with `//`"},
	} {
		text := wrap("stmt", c.text)
		l := &diag.List{}
		Parse(source.New("m.mt", []byte(text)), l)
		found := l.Sorted()
		if len(found) == 0 {
			t.Errorf("%q: no error", c.text)
			continue
		}
		d := found[0]
		if want := strings.Index(text, c.at); d.Span().Start != want {
			t.Errorf("%q: the error is at %d, %q at %d", c.text, d.Span().Start, c.at, want)
		}
		if !strings.Contains(strings.Join(d.Help, "\n"), c.hint) {
			t.Errorf("%q: %s, with help %q, not %q", c.text, d.Message, d.Help, c.hint)
		}
	}
}
