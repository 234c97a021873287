package compiler

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/tools/cputime"
)

// TestHostileTexts gives the compiler texts made to cost time or memory: each must end in an
// error, quickly, without a panic. The bound is loose, for slow machines: the
// texts are such that a cost that grows with the square of their length would pass a minute.
func TestHostileTexts(t *testing.T) {
	line := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(format, "#", strconv.Itoa(i)))
		}
		return b.String()
	}
	body := func(s string) string {
		return "model m(D = 64, V = 256, no = false) {\n  init normal(0.02)\n  block layer(x) { x = silu(x) }\n  forward(tokens) {\n    x = wte: embed(tokens, V, D)\n" +
			s + "    layer(x)\n    return head: linear(x, V)\n  }\n}\n"
	}
	for name, text := range map[string]string{
		"a repeat of 10^9":                 body("repeat 1000000000 { layer(x) }\n"),
		"a repeat of the largest int":      body("repeat 9223372036854775807 { }\n"),
		"repeats in repeats":               body(strings.Repeat("repeat 9000 {\n", 150) + strings.Repeat("}\n", 150)),
		"a repeat of nothing, long":        body("repeat 10000 {\n" + line(4000, "if no { x = silu(x) }\n") + "}\n"),
		"blocks that double":               "model m(D = 64, V = 256) {\ninit one\nblock b0(x) { x = silu(x) }\n" + doubling(200) + "forward(tokens) {\nx = wte: embed(tokens, V, D)\nb199(x)\nreturn head: linear(x, V)\n}\n}\n",
		"blocks that double with if":       "model m(D = 64, V = 256) {\ninit one\nblock b0(x) { x = x }\n" + doubling(200) + "forward(tokens) {\nx = wte: embed(tokens, V, D)\nb199(x)\nreturn head: linear(x, V)\n}\n}\n",
		"a long circle of blocks":          "model m(D = 64, V = 256) {\n" + line(6000, "block b#(x) { b#x(x) }\n") + "forward(tokens) { return h: linear(w: embed(tokens, 4, 4), 4) }\n}\n",
		"many unknown names":               body(line(9000, "y# = silu(z#)\n")),
		"many variables, many ifs":         body(line(5000, "y# = silu(x)\n") + line(4000, "if no { y# = x }\n") + "x = q\n"),
		"many parameters":                  "model m(" + line(15000, "a# = #, ") + "D = 1) {\nforward(tokens) { return h: linear(w: embed(tokens, 4, 4), 4) }\n}\n",
		"many models":                      line(6000, "model m#(D = 1) { }\n"),
		"many instances":                   line(6000, "model m# = m(D = #)\n"),
		"an instance of an instance of ..": "model m0(D = 1) { }\n" + instances(5000),
		"many presets":                     "model m(D = 1) {\n" + line(6000, "preset p# { E = # }\n") + "}\n",
		"many labels in a map":             "model n(D = 1) {\nforward(tokens) { return h: linear(w: embed(tokens, 4, 4), 4) }\nweights hf {\n" + line(7000, "w# = \"a#\"\n") + "}\n}\n",
		"constants that double":            "model m(a0 = llama3(1.0, 1.0, 1.0, 1.0), " + line(200, "b# = llama3(a0, a0, a0, a0), ") + "D = 1) {\n}\n",
		"deep parentheses":                 body("x = " + strings.Repeat("(", 5000) + "x" + strings.Repeat(")", 5000) + "\n"),
		"a long chain":                     body("x = x" + strings.Repeat(" + x", 50000) + "\n"),
		"a file of 10 MB":                  strings.Repeat("// padding to be refused\n", 400000),
		"NUL bytes":                        "model m(D = 1\x00) { }\n\x00\x00",
		"invalid UTF-8":                    "model m(D\xff\xfe = 1) { }\n",
		"many train fields":                body("") + "train {\n" + line(9000, "seq# = #\n") + "}\n",
		"calls in calls":                   body("x = " + strings.Repeat("silu(", 180) + "y" + strings.Repeat(")", 180) + "\n"),
	} {
		t.Run(name, func(t *testing.T) {
			l := &diag.List{}
			var err error
			took := cputime.Of(func() {
				_, err = Check(context.Background(), Options{Path: "m.mt", Text: []byte(text), ReadFile: os.ReadFile}, l)
			})
			if took > 15*time.Second {
				t.Errorf("took %s", took)
			}
			if err == nil {
				t.Error("no error")
			}
			if l.Len() > 200 {
				t.Errorf("%d findings", l.Len())
			}
			for _, d := range l.Sorted() {
				if strings.HasPrefix(d.Code, "MT00") {
					t.Errorf("%s %q", d.Message, d.Notes)
				}
			}
			if testing.Verbose() {
				t.Logf("%8s  %d findings: %s", took.Round(time.Millisecond), l.Len(), l.Error())
			}
		})
	}
}

func doubling(n int) string {
	var b strings.Builder
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "block b%d(x) { b%d(x); b%d(x) }\n", i, i-1, i-1)
	}
	return b.String()
}

func instances(n int) string {
	var b strings.Builder
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "model m%d = m%d()\n", i, i-1)
	}
	return b.String()
}

// TestInternalError shows that a panic in a pass becomes a diagnostic that names it.
func TestInternalError(t *testing.T) {
	saved := pipeline
	defer func() { pipeline = saved }()
	pipeline = append([]pass{{Name: "broken", Run: func(*state) { panic("a slip") }}}, saved...)
	l := &diag.List{}
	_, err := Check(context.Background(), Options{Path: "../models/nano.mt"}, l)
	if err == nil || l.Len() != 1 {
		t.Fatalf("error %v, %d findings", err, l.Len())
	}
	d := l.Sorted()[0]
	if d.Code != "MT0001" || !strings.Contains(d.Message, "internal compiler error in pass broken: a slip") || len(d.Notes) == 0 {
		t.Errorf("%s %s %q", d.Code, d.Message, d.Notes)
	}
}

// TestCancelled shows that a cancelled context ends a compile.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Check(ctx, Options{Path: "../models/nano.mt"}, &diag.List{}); err != context.Canceled {
		t.Errorf("error %v", err)
	}
}
