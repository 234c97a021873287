package format

import (
	"errors"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/parser"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/tools/cputime"
)

// TestGolden formats each NAME.in.mt and compares with NAME.out.mt. MTC_UPDATE=1 rewrites them.
func TestGolden(t *testing.T) {
	ins, err := filepath.Glob("testdata/*.in.mt")
	if err != nil || len(ins) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, in := range ins {
		got := formatFile(t, in)
		golden := strings.TrimSuffix(in, ".in.mt") + ".out.mt"
		if os.Getenv("MTC_UPDATE") != "" {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), string(got)); d != "" {
			t.Errorf("%s (-want +got):\n%s", in, d)
		}
		if again := format(t, golden, got); string(again) != string(got) {
			t.Errorf("%s: formatting it again changes it:\n%s", golden, cmp.Diff(string(got), string(again)))
		}
	}
}

func formatFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return format(t, name, text)
}

func format(t *testing.T, name string, text []byte) []byte {
	t.Helper()
	out, err := Source(source.New(name, text))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

// TestLayoutDependsOnTokensOnly shows that spaces, blank-line runs, line ends and a byte order mark of
// the text leave no trace: texts that differ in them alone come out the same.
func TestLayoutDependsOnTokensOnly(t *testing.T) {
	names, err := filepath.Glob("../parser/testdata/*.mt")
	if err != nil || len(names) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	rng := rand.New(rand.NewSource(1))
	for _, n := range names {
		want := string(formatFile(t, n))
		for range 20 {
			mangled := mangle(rng, want)
			if got := string(format(t, n, []byte(mangled))); got != want {
				t.Errorf("%s: other spaces, other layout:\n%s", n, cmp.Diff(want, got))
				break
			}
		}
	}
}

// mangle changes the spaces of a formatted text, not its tokens and line breaks.
func mangle(rng *rand.Rand, text string) string {
	blanks := []string{" ", "  ", "\t", "     "}
	eol := []string{"\n", "\r\n"}[rng.Intn(2)]
	var b strings.Builder
	if rng.Intn(2) == 0 {
		b.WriteString("\ufeff")
	}
	for _, line := range strings.Split(text, "\n") {
		code, comment, has := strings.Cut(line, "//")
		words := strings.Fields(code)
		b.WriteString(strings.Repeat(" ", rng.Intn(9)))
		for i, w := range words {
			if i > 0 {
				b.WriteString(blanks[rng.Intn(len(blanks))])
			}
			b.WriteString(w)
		}
		if has {
			b.WriteString(strings.Repeat(" ", rng.Intn(9)) + "//" + comment)
		}
		b.WriteString(strings.Repeat(" ", rng.Intn(3)) + eol)
		if line == "" {
			b.WriteString(strings.Repeat(eol, rng.Intn(3)))
		}
	}
	return b.String()
}

// TestLargeTexts: the work grows with the text, not with its square, also for one long line and
// many comments.
func TestLargeTexts(t *testing.T) {
	rep := strings.Repeat
	const n = 48 << 10
	for name, text := range map[string]string{
		"one line":      "model m() { block b(x) { " + rep("y = f(a, b); ", n/13) + "} }",
		"many lines":    "model m() {\nblock b(x) {\n" + rep("y = f(a, b)\n", n/12) + "}\n}",
		"one call":      "model m() {\nblock b(x) {\ny = f(" + rep("a, ", n/3) + "b)\n}\n}",
		"many comments": "model m() {\n" + rep("// c\n", n/5) + "}",
		"call comments": "model m() {\nblock b(x) {\ny = f(" + rep("a, // c\n", n/8) + "b)\n}\n}",
		"many weights":  "model m() {\nweights hf {\n" + rep("a.b = \"c\" // d\n", n/16) + "}\n}",
		"many models":   rep("model m() { }\n", n/14),
		"many braces":   "model m() { " + rep("block b(x) { y = x }; ", n/22) + "}",
	} {
		var out []byte
		if took := cputime.Of(func() { out = format(t, name, []byte(text)) }); took > 15*time.Second { // most take a fraction of a second
			t.Errorf("%s: %v", name, took)
		}
		if len(out) < n/2 {
			t.Errorf("%s: %d bytes are left of %d", name, len(out), len(text))
		}
	}
}

func TestErrorsAreRefused(t *testing.T) {
	_, err := Source(source.New("m.mt", []byte("model m(")))
	var l *diag.List
	if !errors.As(err, &l) || l.Len() == 0 {
		t.Errorf("got %v, want diagnostics", err)
	}
}

// FuzzSource: what parses can be formatted, keeps its meaning and its comments, and is
// formatted already then.
func FuzzSource(f *testing.F) {
	for _, pattern := range []string{"testdata/*.mt", "../parser/testdata/*.mt"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			f.Fatalf("no texts: %v", err)
		}
		for _, n := range names {
			text, err := os.ReadFile(n)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var l diag.List
		file := source.New("fuzz.mt", text)
		tree := parser.Parse(file, &l)
		if l.HasErrors() {
			return
		}
		out, err := Source(file)
		if errors.Is(err, ErrTooLarge) {
			return
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var want, got []string
		for _, c := range tree.Comments {
			want = append(want, c.Text)
		}
		for _, c := range parser.Parse(source.New("out.mt", out), &l).Comments {
			got = append(got, c.Text)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("comments changed:\n%s\n%s", d, out)
		}
		again, err := Source(source.New("out.mt", out))
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if d := cmp.Diff(string(out), string(again)); d != "" {
			t.Fatalf("formatting again changes it:\n%s", d)
		}
	})
}
