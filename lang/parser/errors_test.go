package parser

import (
	"strings"
	"testing"

	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
)

// slips are texts with one slip each. «» stand around the span that must be reported (nothing
// between them: a place between two characters). Each must give exactly this one error.
var slips = []struct{ in, text, code, message string }{
	// Characters.
	{"stmt", "y = a «@» b", "MT0103", "unknown character `@`"},
	{"stmt", "y = «größe»", "MT0103", "letters outside a to z"},
	{"stmt", "y = a «&&» b", "MT0103", "unknown character `&`"},
	{"stmt", "y = «!»a", "MT0103", "unknown character `!`"},
	{"stmt", "y = a «\x00\x00\x00»", "MT0103", "3 times NUL byte"},
	{"stmt", "y = a «\xff\xfe»", "MT0103", "invalid UTF-8 (2 bytes from 0xFF)"},
	{"stmt", "y = a «\r» + b", "MT0103", "carriage return without a line feed"},
	{"stmt", "y = a\u2028+ b"[:5] + "«\u2028»+ b", "MT0103", "unknown character U+2028"},
	{"stmt", "y = a // x«\x01»y", "MT0103", "control character U+0001 in a comment"},
	{"stmt", "y = a «#» 3 @ 4", "MT0103", "unknown character `#`"},
	{"stmt", "y = f(«'»a)", "MT0103", "unknown character `'`"},
	{"file", "«\xff\xfe»m\x00o\x00", "MT0103", "UTF-16"},
	{"file", "«m\x00»o\x00d\x00", "MT0103", "UTF-16"},
	{"file", "«\x00m»\x00o\x00d", "MT0103", "UTF-16"},
	// What stands in many places is one fault.
	{"file", "model m {«\r»  init zero\r  // a\r  forward(tokens) {\r  }\r}\r", "MT0103", "6 times carriage return without a line feed"},
	{"file", "// a«\r»\r\nmodel m {\r\r\n}\r\r\n", "MT0103", "3 times carriage return without a line feed"},
	{"file", "model m {\n«\u00a0\u00a0»init zero\n\u00a0\u00a0forward(tokens) {\n\u00a0\u00a0\u00a0\u00a0return head: linear(x, 2)\n\u00a0\u00a0}\n}\n", "MT0103", "unknown character U+00A0"},
	{"file", "model m(«größe» = 3, D = größe) {\n  forward(tokens) {\n    return head: linear(größe, größe)\n  }\n}\n", "MT0103", "letters outside a to z"},
	{"file", "// lapt«\xf6»p\n// \xfc, \xf6\r\nmodel m {\n  // \xf6\n}\n", "MT0103", "invalid UTF-8 (byte 0xF6) in a comment"},
	{"file", "«#» a\nmodel m { # b\n  # c\n}\n", "MT0103", "unknown character `#`"},
	// Strings and numbers.
	{"stmt", "y = f(«\"»abc)", "MT0105", "does not end on its line"},
	{"stmt", "y = f(\"a«\\d»b\")", "MT0105", "`\\d` means nothing in a string"},
	{"stmt", "y = f(\"a«\x00»b\")", "MT0103", "NUL byte in a string"},
	{"stmt", "y = «12abc»", "MT0106", "is not a number"},
	{"stmt", "y = «524_288»", "MT0106", "is not a number"},
	{"stmt", "y = «0x10»", "MT0106", "is not a number"},
	{"stmt", "y = «1.»", "MT0106", "no digits after the point"},
	{"stmt", "y = «9223372036854775808»", "MT0106", "does not fit 64 bits"},
	{"stmt", "y = «1e999»", "MT0106", "larger than a float"},
	// Values and operators.
	{"stmt", "y = 3 * «*» 4", "MT0101", "expected a value after `*`, found `*`"},
	{"stmt", "y =«»", "MT0101", "expected a value after `=`, found the end of the line"},
	{"stmt", "y = a +«»", "MT0101", "expected a value after `+`, found the end of the line"},
	{"stmt", "y = «)»", "MT0108", "`)` closes nothing"},
	{"stmt", "y = a «b»", "MT0101", "expected an operator or the end of the line, found `b`"},
	{"stmt", "y = a «z» = b", "MT0101", "expected an operator or the end of the line, found `z`"},
	{"stmt", "y = a«.»b", "MT0101", "found `.`"},
	{"stmt", "y = a«[»3]", "MT0101", "found `[`"},
	{"stmt", "y = «[3]»", "MT0101", "a list cannot stand here"},
	{"stmt", "y = f(a)«(»b)", "MT0101", "found `(`"},
	{"stmt", "y = f(a «b»)", "MT0101", "expected `,` or `)`, found `b`"},
	{"stmt", "y = f(a, «,» b)", "MT0101", "expected a value after `,`, found `,`"},
	{"stmt", "y = f(«,» b)", "MT0101", "expected a value after `(`, found `,`"},
	{"stmt", "y = (a«,» b)", "MT0101", "found `,`"},
	{"stmt", "y = («)»", "MT0101", "expected a value after `(`, found `)`"},
	{"stmt", "y = a < b «<» c", "MT0109", "comparisons do not chain"},
	{"stmt", "y = a * «not» b", "MT0109", "`not` binds weaker"},
	{"stmt", "y = a * «if» c then 1 else 2", "MT0109", "stands in parentheses"},
	{"stmt", "y = if c «1» else 2", "MT0101", "expected `then`, found `1`"},
	{"stmt", "y = if c then 1«»", "MT0101", "expected `else`"},
	{"stmt", "y = f(if c then 1«,» 2)", "MT0101", "expected `else`"},
	{"stmt", "y = if c then «else» 2", "MT0101", "expected a value after `then`"},
	{"stmt", "y = a «=» b", "MT0101", ""},
	{"stmt", "y = (a «=» b)", "MT0101", ""},
	{"stmt", "y = 3 + «block»", "MT0110", "`block` is a reserved word"},
	// Labels.
	{"file", "train {\n  steps«:» 10\n}", "MT0101", "expected `=` after `steps`, found `:`"},
	{"file", "model m {\n  preset a { D«:» 10 }\n}", "MT0101", "expected `=` after `D`, found `:`"},
	{"stmt", "y = up: «x»", "MT0111", "a label names a call, found `x`"},
	{"stmt", "y = up: «3»", "MT0111", "a label names a call, found `3`"},
	{"stmt", "y = up: «(»f(x))", "MT0111", "a label names a call, found `(`"},
	{"stmt", "up: «x» = f(x)", "MT0111", "a label names a call, found `x`"},
	{"stmt", "y = a: «b»: f(x)", "MT0111", "a label names a call, found `b`"},
	// Brackets and braces.
	{"stmt", "y = f(a«»\nz = 1", "MT0102", "`(` is not closed on this line"},
	{"stmt", "y = f(a,\n  b«»\n  c)\nz = 1", "MT0102", "`(` is not closed on this line"},
	{"stmt", "y = f(g(a, b)«»\nz = 1", "MT0102", "`(` is not closed on this line"},
	{"stmt", "y = f(a +«»\nz = 1", "MT0102", "`(` is not closed on this line"},
	{"stmt", "y = f(a,«»\nz += 1", "MT0102", "`(` is not closed on this line"},
	{"stmt", "y = f(a,«»\nreturn z", "MT0102", "`(` is not closed on this line"},
	{"stmt", "y = f(a«» ; z = 1", "MT0102", "`(` is not closed before `;`"},
	{"stmt", "if f(a«» { y = 1 }", "MT0102", "`(` is not closed before `{`"},
	{"stmt", "y = f(a«]»", "MT0108", "`(` is closed by `]`"},
	{"stmt", "y = f(a)«)»", "MT0108", "`)` closes nothing"},
	{"file", "model m() {\n block b(x) «{»\n  x = 1\n forward(tokens) {\n }\n}\n", "MT0102", "`{` is not closed"},
	{"file", "model m() «{»\n block b(x) {\n  x = 1\n }\ntrain { seq = 1 }\n", "MT0102", "`{` is not closed"},
	{"file", "model m() «{»\n block b(x) {\n }\n", "MT0102", "`{` is not closed"},
	{"file", "model m() {\n block b(x) {\n }\n«}»\n block c(x) {\n }\n}\n", "MT0108", "this `}` closes the model"},
	{"file", "model m() {\n}\n«}»", "MT0108", "`}` closes nothing"},
	// Statements.
	{"stmt", "«foo»", "MT0101", "a statement is"},
	{"stmt", "«3» + 4", "MT0101", "a statement is"},
	{"stmt", "«for» i in x { y = 1 }", "MT0101", "a statement is"},
	{"stmt", "«let» y = 3", "MT0101", "a statement is"},
	{"stmt", "«if» = 3", "MT0110", "`if` is a reserved word"},
	{"stmt", "«true» = 3", "MT0110", "`true` is a reserved word"},
	{"stmt", "«none»(x)", "MT0110", "`none` is a reserved word"},
	{"stmt", "return«»", "MT0101", "expected a value after `return`"},
	{"stmt", "f(x) «g»(x)", "MT0101", "found `g`"},
	{"stmt", "if a «y» = 1 ", "MT0101", "expected `{`, found `y`"},
	{"stmt", "if «{» y = 1 }", "MT0101", "expected a value after `if`"},
	{"stmt", "if a { y = 1 } «y» = 2", "MT0101", "expected the end of the line after `}`, found `y`"},
	{"stmt", "if a { y = 1 }\n«else» { y = 2 }", "MT0101", "`else` starts a line"},
	{"stmt", "«else» { y = 2 }", "MT0101", "`else` without `if`"},
	{"stmt", "repeat «{» f(x) }", "MT0101", "expected a value after `repeat`"},
	{"stmt", "repeat 3 «f»(x)", "MT0101", "expected `{` or `as`"},
	{"stmt", "repeat 3 as «{» f(x) }", "MT0101", "expected a name for the counter"},
	{"stmt", "repeat 3 as «if» { f(x) }", "MT0110", "reserved"},
	{"stmt", "y = f(x) «{» y = 1 }", "MT0101", "`{` cannot stand here"},
	{"stmt", "x«,» y = f(x)", "MT0101", "expected `=`, found `,`"},
	// Declarations and items.
	{"file", "«foo»", "MT0107", "a file holds `model`, `train` and `use`, found `foo`"},
	{"file", "«modle» m() {\n}", "MT0107", "found `modle`"},
	{"file", "«block» b(x) { }", "MT0107", "found `block`"},
	{"file", "use «foo»", "MT0101", "expected a path in quotes"},
	{"file", "use«»", "MT0101", "expected a path in quotes"},
	{"file", "use \"a.mt\" «b»", "MT0101", "found `b`"},
	{"file", "model «3»() {\n}", "MT0101", "expected a name, found `3`"},
	{"file", "model m()«»", "MT0101", "expected `{`"},
	{"file", "model m«»", "MT0101", "expected `{`"},
	{"file", "model «if»() {\n}", "MT0110", "`if` is a reserved word"},
	{"file", "model m(D «:» 3) {\n}", "MT0101", "found `:`"},
	{"file", "model m(D = 3 «E» = 4) {\n}", "MT0101", "expected `,` or `)`, found `E`"},
	{"file", "model m(D «E») {\n}", "MT0101", "expected `,`, `=` or `)`, found `E`"},
	{"file", "model m(«3») {\n}", "MT0101", "expected a parameter, found `3`"},
	{"file", "model m(D = «)» {\n}", "MT0101", "expected a value after `=`"},
	{"file", "model m = «3»", "MT0101", ""},
	{"file", "train «3»", "MT0101", "expected `{`"},
	{"file", "train { seq «1024» }", "MT0101", "expected `=` after `seq`, found `1024`"},
	{"file", "train { «3» = 4 }", "MT0101", "expected a name"},
	{"file", "train { batch = 3 tokens «extra» }", "MT0101", "found `extra`"},
	{"item", "«blok» b(x) {\n }", "MT0107", "found `blok`"},
	{"file", "model m()«:»\n  x = 1\n  y = 2\n\nmodel n() {\n}", "MT0101", "expected `{`, found `:`"},
	{"file", "«x» = 1\ny = 2\n", "MT0107", "found `x`"},
	{"item", "«x» = 1\n y = 2\n init zero", "MT0107", "found `x`"},
	{"item", "block b(x)«:»\n  y = x\n  x += y\n block c(x) { x = f(x) }", "MT0101", "expected `{`, found `:`"},
	{"item", "«D» = 3", "MT0107", "found `D`"},
	{"item", "block b «{»\n }", "MT0101", "expected `(` and parameters"},
	{"item", "block b(x)«»", "MT0101", "expected `{`"},
	{"item", "block «if»(x) {\n }", "MT0110", "`if` is a reserved word"},
	{"item", "forward «{»\n }", "MT0101", "expected `(` and parameters"},
	{"item", "preset «{» D = 3 }", "MT0101", "expected a name"},
	{"item", "preset p { D «==» 3 }", "MT0101", "expected `=` after `D`"},
	{"item", "preset p { D = 3, «3» }", "MT0101", "expected a name and `=`"},
	{"item", "preset p { D = 3 «E» = 4 }", "MT0101", "found `E`"},
	{"item", "weights «{»\n }", "MT0101", "expected a name"},
	{"item", "init«»", "MT0101", "expected a value after `init`"},
	{"weights", "layer[i].q«»", "MT0101", "expected `=`"},
	{"weights", "layer[«3»].q = \"q\"", "MT0101", ""},
	{"weights", "layer[i]«q» = \"q\"", "MT0101", ""},
	{"weights", "a =«»", "MT0101", "expected a value after `=`"},
	{"weights", "«\"q\"» = a", "MT0101", "expected a name"},
}

// wrap puts a text where it belongs in a file.
func wrap(in, text string) string {
	switch in {
	case "stmt":
		return "model m(D = 1) {\n  block b(x) {\n    " + text + "\n  }\n}\ntrain { seq = 3 }\n"
	case "item":
		return "model m(D = 1) {\n " + text + "\n}\ntrain { seq = 3 }\n"
	case "weights":
		return "model m(D = 1) {\n weights hf {\n  " + text + "\n }\n}\ntrain { seq = 3 }\n"
	}
	return text
}

func TestOneSlipOneError(t *testing.T) {
	for _, c := range slips {
		marked := wrap(c.in, c.text)
		start := strings.Index(marked, "«")
		text := strings.Replace(marked, "«", "", 1)
		end := strings.Index(text, "»")
		text = strings.Replace(text, "»", "", 1)
		var l diag.List
		Parse(source.New("m.mt", []byte(text)), &l)
		items := l.Sorted()
		if len(items) != 1 {
			t.Errorf("%q: %d errors, want 1:", c.text, len(items))
			for _, d := range items {
				t.Errorf("    %s %s: %s", d.Span(), d.Code, d.Message)
			}
			continue
		}
		d := items[0]
		if d.Code != c.code || !strings.Contains(d.Message, c.message) {
			t.Errorf("%q: got %s: %s, want %s: %s", c.text, d.Code, d.Message, c.code, c.message)
		}
		if s := d.Span(); s.Start != start || s.End != end {
			t.Errorf("%q: %s: span is %q at %d, want %q at %d", c.text, d.Message, s.Text(), s.Start, text[start:end], start)
		}
		if !plainStyle(d.Message) {
			t.Errorf("message %q starts with a capital or ends with a full stop", d.Message)
		}
	}
}

// plainStyle checks the style of messages: lower case at the start, acronyms aside, no full stop.
func plainStyle(m string) bool {
	upper := func(c byte) bool { return c >= 'A' && c <= 'Z' }
	return !(upper(m[0]) && !upper(m[1])) && (!strings.HasSuffix(m, ".") || strings.HasSuffix(m, ".."))
}

// TestErrorsAreSeparate shows that each of several slips is found, in source order.
func TestErrorsAreSeparate(t *testing.T) {
	for _, in := range []string{"stmt", "item", "weights"} {
		for _, a := range slips {
			for _, b := range slips[:20] {
				if a.in != in || b.in != in || strings.HasPrefix(a.text, "else") || strings.HasPrefix(a.text, "«else") {
					continue
				}
				clean := strings.NewReplacer("«", "", "»", "")
				var l diag.List
				text := wrap(in, clean.Replace(a.text)+"\n\n"+clean.Replace(b.text))
				Parse(source.New("m.mt", []byte(text)), &l)
				items := l.Sorted()
				if len(items) != 2 || items[0].Code != a.code || items[1].Code != b.code {
					t.Errorf("%q then %q: %d errors", a.text, b.text, len(items))
					for _, d := range items {
						t.Errorf("    %s %s: %s", d.Span(), d.Code, d.Message)
					}
				}
			}
		}
	}
}
