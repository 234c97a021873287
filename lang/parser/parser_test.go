package parser

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/megatrain/mtc/lang/ast"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/source"
)

// TestSamples parses whole models and compares their trees with NAME.ast. MTC_UPDATE=1 rewrites these.
func TestSamples(t *testing.T) {
	names, err := filepath.Glob("testdata/*.mt")
	if err != nil || len(names) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	for _, n := range names {
		text, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		var l diag.List
		tree := Parse(source.New(n, text), &l)
		for _, d := range l.Sorted() {
			t.Errorf("%s: %s", d.Span(), d.Message)
		}
		var b bytes.Buffer
		ast.Dump(&b, tree, true)
		golden := strings.TrimSuffix(n, ".mt") + ".ast"
		if os.Getenv("MTC_UPDATE") != "" {
			if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), b.String()); d != "" {
			t.Errorf("%s (-want +got)\n%s", golden, d)
		}
	}
}

// show writes an expression with a pair of brackets around each operation.
func show(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.Int:
		return fmt.Sprint(e.Value)
	case *ast.Float:
		return e.Text
	case *ast.Bool:
		return fmt.Sprint(e.Value)
	case *ast.None:
		return "none"
	case *ast.String:
		return fmt.Sprintf("%q", e.Value)
	case *ast.Unary:
		return "[" + e.Op + " " + show(e.X) + "]"
	case *ast.Binary:
		return "[" + show(e.X) + " " + e.Op + " " + show(e.Y) + "]"
	case *ast.Cond:
		return "[if " + show(e.If) + " then " + show(e.Then) + " else " + show(e.Else) + "]"
	case *ast.Paren:
		return "(" + show(e.X) + ")"
	case *ast.Call:
		var args []string
		for _, a := range e.Args {
			s := show(a.Value)
			if a.Name != nil {
				s = a.Name.Name + "=" + s
			}
			args = append(args, s)
		}
		label := ""
		if e.Label != nil {
			label = e.Label.Name + ":"
		}
		return label + e.Callee.Name + "(" + strings.Join(args, ", ") + ")"
	}
	return fmt.Sprintf("%T", e)
}

func TestExpressions(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"1 + 2 * 3 - 4", "[[1 + [2 * 3]] - 4]"},
		{"a - b - c", "[[a - b] - c]"},
		{"a / b * c % d", "[[[a / b] * c] % d]"},
		{"-a * b", "[[- a] * b]"},
		{"a * -b", "[a * [- b]]"},
		{"--a", "[- [- a]]"},
		{"a - -1", "[a - [- 1]]"},
		{"a or b and not c == d + 1", "[a or [b and [not [c == [d + 1]]]]]"},
		{"not not a", "[not [not a]]"},
		{"not a and b", "[[not a] and b]"},
		{"-a < b", "[[- a] < b]"},
		{"a == b or a != b and c <= d", "[[a == b] or [[a != b] and [c <= d]]]"},
		{"if a then b else if c then d else e", "[if a then b else [if c then d else e]]"},
		{"if if a then b else c then d else e", "[if [if a then b else c] then d else e]"},
		{"if a then b + 1 else c * 2", "[if a then [b + 1] else [c * 2]]"},
		{"(if a then b else c) + 1", "[([if a then b else c]) + 1]"},
		{"up: f(x) * gate: g(x)", "[up:f(x) * gate:g(x)]"},
		{"-up: f(x)", "[- up:f(x)]"},
		{"f(x, n = 1, bias, y,)", "f(x, n=1, bias, y)"},
		{"f()", "f()"},
		{"f(if a then 1 else 2, b = if c then 3 else 4)", "f([if a then 1 else 2], b=[if c then 3 else 4])"},
		{"6e-4", "6e-4"},
		{"1.0e+3 + 1E6", "[1.0e+3 + 1E6]"},
		{"9223372036854775807", "9223372036854775807"},
		{`"a\"b\\c\nd\te // no comment"`, `"a\"b\\c\nd\te // no comment"`},
		{"none", "none"},
		{"true and false", "[true and false]"},
		// Words that are special only in their place.
		{"and + or * not", "[and + [or * not]]"},
		{"not not", "[not not]"},
		{"a and not", "[a and not]"},
		{"not(a)", "[not (a)]"},
		{"not (a) and b", "[[not (a)] and b]"},
		{"preset + init + weights + train + use", "[[[[preset + init] + weights] + train] + use]"},
		{"init(3)", "init(3)"},
		// Line breaks inside brackets.
		{"f(\n  a,\n\n  // why\n  b +\n  c,\n)", "f(a, [b + c])"},
		{"(a and\nnot\nb)", "([a and [not b]])"},
		{"f(a =\n 1, b = if c then\n 2 else\n 3)", "f(a=1, b=[if c then 2 else 3])"},
		{"f(g(a\n), b\n)", "f(g(a), b)"},
	} {
		var l diag.List
		e := ParseExpr(source.New("", []byte(c.text)), &l)
		if err := l.Err(); err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if got := show(e); got != c.want {
			t.Errorf("%q: got %s, want %s", c.text, got, c.want)
		}
	}
}

// TestSpans: the span of each node is the text it was made from.
func TestSpans(t *testing.T) {
	const text = "x += up: linear(-a * (b + 1), D, bias, init = normal(0.02))"
	var l diag.List
	f := source.New("m.mt", []byte("model m() {\n block b(x) {\n"+text+"\n }\n}"))
	tree := Parse(f, &l)
	if err := l.Err(); err != nil {
		t.Fatal(err)
	}
	m := tree.Decls[0].(*ast.Model)
	st := m.Blocks[0].Body[0].(*ast.Assign)
	call := st.Value.(*ast.Call)
	mul := call.Args[0].Value.(*ast.Binary)
	for want, got := range map[string]source.Span{
		text:                             st.Span,
		"x":                              st.Target.Span,
		"+=":                             st.OpSpan,
		text[5:]:                         call.Span,
		"up":                             call.Label.Span,
		"linear":                         call.Callee.Span,
		"-a * (b + 1)":                   mul.Span,
		"*":                              mul.OpSpan,
		"-a":                             mul.X.Pos(),
		"(b + 1)":                        mul.Y.Pos(),
		"init = normal(0.02)":            call.Args[3].Span,
		"init":                           call.Args[3].Name.Span,
		"normal(0.02)":                   call.Args[3].Value.Pos(),
		string(f.Text):                   m.Span,
		"block b(x) {\n" + text + "\n }": m.Blocks[0].Span,
	} {
		if got.Text() != want {
			t.Errorf("span is %q, want %q", got.Text(), want)
		}
	}
}

func TestField(t *testing.T) {
	for _, c := range []struct{ text, name, value, unit string }{
		{"batch = 524288 tokens", "batch", "524288", "tokens"},
		{"lr=cosine(peak = 6e-4, warmup = 700)", "lr", "cosine(peak=6e-4, warmup=700)", ""},
		{" precision = bf16 // why", "precision", "bf16", ""},
	} {
		var l diag.List
		f := ParseField(source.New("--set", []byte(c.text)), &l)
		if err := l.Err(); err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		unit := ""
		if f.Unit != nil {
			unit = f.Unit.Name
		}
		if f.Name.Name != c.name || show(f.Value) != c.value || unit != c.unit {
			t.Errorf("%q: got %s %s %q", c.text, f.Name.Name, show(f.Value), unit)
		}
	}
	for _, text := range []string{"", "lr", "lr =", "= 3", "lr = 3; seed = 4", "lr = 3\nseed = 4", "lr = 3 a b", "lr += 3", "{", "lr = { }"} {
		var l diag.List
		if f := ParseField(source.New("--set", []byte(text)), &l); f != nil || l.Len() != 1 {
			t.Errorf("%q: tree %v, %d findings, want none and 1: %v", text, f, l.Len(), l.Err())
		}
	}
	for _, text := range []string{"", "3 4", "a = 3", "f(", "3\n4", "x += 1", "@", "}"} {
		var l diag.List
		if e := ParseExpr(source.New("--set", []byte(text)), &l); e != nil || l.Len() != 1 {
			t.Errorf("%q: tree %v, %d findings, want none and 1: %v", text, e, l.Len(), l.Err())
		}
	}
}

// TestLayouts: texts that differ in layout alone have one tree.
func TestLayouts(t *testing.T) {
	const want = "model m(D = 1) {\n  block b(x) {\n    if D == 1 {\n      x = f(x, 1)\n    } else if D == 2 {\n      x = g(x)\n    } else {\n      x = h(x)\n    }\n    x += o: f(x)\n  }\n}\n"
	for _, text := range []string{
		"\ufeffmodel m(D = 1) { block b(x) { if D == 1 { x = f(x, 1) } else if D == 2 { x = g(x) } else { x = h(x) }; x += o: f(x) } }",
		"model m(\n  D = 1,\n) {\n\tblock b(\n x\n) {\n if D ==1{x=f(x,\n1)}else if D==2{x=g(x)}else{x=h(x)}\nx+=o:f(x)}}",
		strings.ReplaceAll(want, "\n", "\r\n"),
		strings.ReplaceAll(want, "\n", " // c\n"),
		";;" + strings.ReplaceAll(want, "x = f(x, 1)", ";x = f(x, 1);;"),
		strings.TrimSuffix(want, "\n"),
	} {
		var l diag.List
		a := Parse(source.New("m.mt", []byte(text)), &l)
		b := Parse(source.New("m.mt", []byte(want)), &l)
		if err := l.Err(); err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		var x, y bytes.Buffer
		ast.Dump(&x, a, false)
		ast.Dump(&y, b, false)
		if d := cmp.Diff(y.String(), x.String()); d != "" {
			t.Errorf("%q (-want +got)\n%s", text, d)
		}
	}
}

// TestComments: text, place and whether a comment stands alone.
func TestComments(t *testing.T) {
	var l diag.List
	f := Parse(source.New("m.mt", []byte("// a \r\nmodel m() { //b\n  //\n}// \"c\"")), &l)
	var got []string
	for _, c := range f.Comments {
		got = append(got, fmt.Sprintf("%s %s %v", c.Span, c.Text, c.Own))
	}
	want := []string{"m.mt:1:1 // a true", "m.mt:2:13 //b false", "m.mt:3:3 // true", `m.mt:4:2 // "c" false`}
	if d := cmp.Diff(want, got); d != "" || l.Len() > 0 {
		t.Errorf("%v (-want +got)\n%s", l.Err(), d)
	}
}

// TestPartialTree: what could be read is in the tree, so that an editor can use it.
func TestPartialTree(t *testing.T) {
	var l diag.List
	f := Parse(source.New("m.mt", []byte("model m(D = 1) {\n  block b(x) {\n    y = f(x\n    z = * 3\n    x = y\n  }\n}\n")), &l)
	if l.Len() != 2 {
		t.Errorf("%d findings, want 2", l.Len())
	}
	body := f.Decls[0].(*ast.Model).Blocks[0].Body
	if len(body) != 2 || show(body[0].(*ast.Assign).Value) != "f(x)" || show(body[1].(*ast.Assign).Value) != "y" {
		t.Errorf("%d statements", len(body))
	}
}
