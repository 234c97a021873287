package diag

import (
	"bytes"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/megatrain/mtc/lang/source"
)

// at returns the span of the n-th occurrence (from 0) of a text.
func at(f *source.File, text string, n int) source.Span {
	from := 0
	for ; ; n-- {
		i := strings.Index(string(f.Text[from:]), text)
		if i < 0 {
			return source.Span{}
		}
		if n == 0 {
			return source.Span{File: f, Start: from + i, End: from + i + len(text)}
		}
		from += i + 1
	}
}

// llama is the example of the style.
const llama = `model m(D, F) {
  block layer(x) {
    a = attention(rope(q, hd, theta), ...)
    x += o: linear(a, F)
	tab =	"日本語" + é + x
  }
}
`

// cases are the lists whose text forms are in testdata/render.txt.
func cases() map[string]*List {
	f := source.New("models/llama.mt", []byte(llama))
	g := source.New("other.mt", []byte("use \"llama.mt\"\r\nmodel n = m(D = 3)\r\n"))
	long := source.New("long.mt", []byte("x = "+strings.Repeat("a + ", 60)+"b + "+strings.Repeat("c + ", 60)))
	bad := source.New("bad.mt", []byte("a\x00b\xff\x7f = 3\n"))
	out := map[string]*List{}
	add := func(name string) *List {
		l := &List{}
		out[name] = l
		return l
	}
	add("1 the style").Errorf("MT0301", at(f, "o: linear(a, F)", 0), "`+=` adds [B, T, 18944] to [B, T, 3584]").
		Mark("[B, T, F = 18944]").Also(at(f, "x ", 0), "[B, T, D = 3584], the block's input").
		Hint("a residual branch ends in the block's width: `o: linear(a, D)`")
	add("2 three spans on a line, a span without text").Errorf("MT0000", at(f, "a, F", 0), "three").
		Mark("primary").Also(at(f, "x +", 0), "first").Also(at(f, "linear", 0), "middle")
	add("3 the primary span stands first on its line").Errorf("MT0000", at(f, "x +", 0), "order").
		Mark("first").Also(at(f, "F)", 0), "last").Also(at(f, "linear(a, F)", 0), "")
	add("4 lines apart, and one between").Errorf("MT0000", at(f, "tab", 0), "apart").
		Also(at(f, "a =", 0), "near").Also(at(f, "model", 0), "far")
	add("5 tabs and wide runes").Errorf("MT0000", at(f, "x\n", 0), "after a tab and three wide runes").Mark("here").
		Also(at(f, "\"日本語\"", 0), "wide").Also(at(f, "é", 0), "a narrow one")
	add("6 two files, carriage returns").Errorf("MT0000", at(g, "m(D = 3)", 0), "from another file").
		Also(at(f, "D, F", 0), "declared here").Note("a note").Note("of two lines\nwith a second").Hint("help")
	add("7 a place between characters, at the end of a line and of the file").
		Errorf("MT0000", source.Span{File: g, Start: 14, End: 14}, "end of line").Mark("expected something").
		Also(source.Span{File: g, Start: len(g.Text), End: len(g.Text)}, "end of file")
	add("8 a long line is cut around the span").Errorf("MT0000", at(long, "b", 0), "long").Mark("here").Also(at(long, "x", 0), "cut off")
	add("9 bytes that do not print").Errorf("MT0000", at(bad, "= 3", 0), "bytes").Mark("here")
	wide := source.New("wide.mt", []byte("x = "+strings.Repeat("日本", 60)+"\ny = "+strings.Repeat("z + ", 18)+"z\n"))
	add("11 a long line of wide runes, cut between two").Errorf("MT0000", at(wide, "本日", 30), "wide").Mark("here")
	add("12 a text without room beside its mark").Errorf("MT0000", at(wide, "z\n", 0), "right").Mark("a text that has to hang below").
		Also(at(wide, "y", 0), "far to the left").Also(at(wide, "z + z\n", 0), "%s", strings.Repeat("words that fill more than one line ", 4))
	l := add("10 a span over several lines, a warning, no span")
	l.Errorf("MT0000", at(f, "block layer(x) {\n    a =", 0), "several lines").Mark("from here")
	l.Warnf("MT0000", source.Span{}, "without a place").Hint("help")
	return out
}

// order lists the cases by their number.
func order(m map[string]*List) []string {
	names := make([]string, 0, len(m))
	for i := 1; i <= len(m); i++ {
		for n := range m {
			if strings.HasPrefix(n, strconv.Itoa(i)+" ") {
				names = append(names, n)
			}
		}
	}
	return names
}

func TestText(t *testing.T) {
	m := cases()
	names := order(m)
	if len(names) != len(m) {
		t.Fatalf("%d names of %d cases", len(names), len(m))
	}
	var b bytes.Buffer
	for _, n := range names {
		b.WriteString("# " + n + "\n\n")
		Render(&b, m[n], Text)
		b.WriteString("\n")
	}
	const golden = "testdata/render.txt"
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
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestShort(t *testing.T) {
	var b bytes.Buffer
	Render(&b, cases()["10 a span over several lines, a warning, no span"], Short)
	want := "models/llama.mt:2:3: error[MT0000]: several lines\nwarning[MT0000]: without a place\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestJSON: one object a line, with the fields that tools rely on.
func TestJSON(t *testing.T) {
	var b bytes.Buffer
	Render(&b, cases()["1 the style"], JSON)
	if n := strings.Count(b.String(), "\n"); n != 1 {
		t.Fatalf("%d lines, want 1", n)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"severity": "error", "code": "MT0301", "message": "`+=` adds [B, T, 18944] to [B, T, 3584]",
		"file": "models/llama.mt", "line": 4.0, "col": 10.0, "endLine": 4.0, "endCol": 25.0,
		"label": "[B, T, F = 18944]", "notes": []any{},
		"help": []any{"a residual branch ends in the block's width: `o: linear(a, D)`"},
		"related": []any{map[string]any{
			"file": "models/llama.mt", "line": 4.0, "col": 5.0, "endLine": 4.0, "endCol": 7.0,
			"text": "[B, T, D = 3584], the block's input",
		}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestSorted: source order within a file, files in order of appearance, one for each cause.
func TestSorted(t *testing.T) {
	f := source.New("a.mt", []byte("x y z"))
	g := source.New("b.mt", []byte("x y z"))
	var l List
	l.Errorf("MT0001", at(g, "y", 0), "g y")
	l.Errorf("MT0001", at(f, "z", 0), "f z")
	l.Errorf("MT0001", at(f, "x", 0), "f x")
	l.Errorf("MT0001", at(f, "x", 0), "f x")
	l.Errorf("MT0002", at(f, "x", 0), "f x")
	var got []string
	for _, d := range l.Sorted() {
		got = append(got, d.Code+" "+d.Message)
	}
	want := []string{"MT0001 g y", "MT0001 f x", "MT0002 f x", "MT0001 f z"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestTextIsNarrow: excerpts and what hangs below them keep to the columns of a terminal, wherever a mark is.
func TestTextIsNarrow(t *testing.T) {
	line := "alpha = " + strings.Repeat("beta(gamma, 日本) + ", 12) + "omega"
	for _, n := range []int{60, 70, 74, 75, 76, 77, 78, 79, 80, 81, 90, len(line)} {
		f := source.New("m.mt", []byte(strings.Repeat("\n", n)+line[:min(n, len(line))]))
		for from := n; from < len(f.Text); from += 7 {
			for _, to := range []int{from + 1, from + 30, len(f.Text)} {
				var l List
				l.Errorf("MT0000", source.Span{File: f, Start: from, End: min(to, len(f.Text))}, "m").Mark("a text beside it").
					Also(source.Span{File: f, Start: n + 8, End: n + 12}, "another one which is longer, and of many words that do not fit beside it either way")
				var b bytes.Buffer
				Render(&b, &l, Text)
				for _, row := range strings.Split(b.String(), "\n") {
					if textWidth(row) > 80 {
						t.Fatalf("%d columns, mark %d to %d of %d: %s", textWidth(row), from-n, to-n, n, row)
					}
				}
			}
		}
	}
}
