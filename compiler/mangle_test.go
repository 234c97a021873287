package compiler

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/lang/format"
	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/tools/cputime"
)

// mangles change a text in ways that no editor's slip does: characters that do not belong into a text,
// names and numbers of any size, nesting, names that meet others, circles.
// quotedWords are the parts of a message that differ from text to text.
var quotedWords = regexp.MustCompile("`[^`]*`|[0-9]+")

var mangles = []func(r *rand.Rand, text string, token func() (from, to int)) string{
	func(r *rand.Rand, text string, token func() (int, int)) string { // an odd character somewhere
		odd := []string{"\x00", "\t", "\r", "\r\n", "\ufeff", "\xff", "é", "日", "\u200b", "“", "\u2028", "−", "×", "\x1b[31m", "\\", "`", "$", "@", "~", "^", "|", "&&", "||", "->", ":=", "==", "...", "'", "\""}
		at := r.IntN(len(text) + 1)
		return text[:at] + odd[r.IntN(len(odd))] + text[at:]
	},
	func(r *rand.Rand, text string, token func() (int, int)) string { // a number of another kind in the place of a token
		numbers := []string{"0", "-1", "-0.0", "1e999", "1e-999", "1e38", "3.5e38", "1e-45", "0.5", "2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1_000", "0x10", "1.", ".5", "1e", "10 / 3", "1 / 0", "0.0 / 0.0", "5 % 0", "sqrt(-1)", "sqrt(0)", "ceil(7, 0)", "4096 * 4096 * 4096 * 4096 * 4096 * 4096", "true", "none", "(((1)))", "\"x\""}
		from, to := token()
		return text[:from] + numbers[r.IntN(len(numbers))] + text[to:]
	},
	func(r *rand.Rand, text string, token func() (int, int)) string { // a long name, everywhere
		from, to := token()
		word := text[from:to]
		if word[0] < 'A' {
			return text
		}
		return strings.ReplaceAll(text, word, strings.Repeat(word, 1+r.IntN(400)))
	},
	func(r *rand.Rand, text string, token func() (int, int)) string { // one name in the place of another, everywhere: shadowing, circles
		a, b := r.IntN(2), [2]string{}
		for i := range b {
			from, to := token()
			b[i] = text[from:to]
		}
		return strings.ReplaceAll(text, b[a], b[1-a])
	},
	func(r *rand.Rand, text string, token func() (int, int)) string { // nesting around a token
		from, to := token()
		n := []int{1, 3, 30, 199, 250, 3000}[r.IntN(6)]
		pair := [][2]string{{"(", ")"}, {"- ", ""}, {"not ", ""}, {"sqrt(", ")"}, {"[", "]"}, {"(1 + ", ")"}, {"if true then ", " else 1"}, {"f(", ")"}, {"{", "}"}}[r.IntN(9)]
		return text[:from] + strings.Repeat(pair[0], n) + text[from:to] + strings.Repeat(pair[1], n) + text[to:]
	},
	func(r *rand.Rand, text string, token func() (int, int)) string { // a stretch of the text twice, or elsewhere
		from, _ := token()
		_, to := token()
		if from > to {
			from, to = to, from
		}
		at, _ := token()
		return text[:at] + text[from:min(to, from+2000)] + text[at:]
	},
	func(r *rand.Rand, text string, token func() (int, int)) string { // cut off
		at, _ := token()
		return text[:at]
	},
	func(r *rand.Rand, text string, token func() (int, int)) string { // an item that meets others
		items := []string{"block layer(x) { layer(x) }", "block a(x) { b(x) }\n  block b(x) { a(x) }", "preset p { D = D, L = L }", "init init", "init none",
			"forward(tokens) { return tokens }", "forward() { }", "block embed(x) { x += x }", "block T(x) { x += x }", "weights hf { a[i].b[j] = \"{k}\" }", "weights hf { }", "init zero", "block x(x) { x = x }"}
		at := strings.Index(text, "{")
		if at < 0 {
			return text
		}
		return text[:at+1] + "\n  " + items[r.IntN(len(items))] + text[at+1:]
	},
	func(r *rand.Rand, text string, token func() (int, int)) string { // constants in circles, and of words
		consts := []string{"a = b, b = a, ", "a = a, ", "L = L, ", "T = 3, ", "tokens = 1, ", "B, ", "a, ", "D = D, ", "a = normal(0.1), ", "a = linear, ", "a = tokens, ", "a = if D > 0 then none else 1, ", "a = [x], "}
		at := strings.Index(text, "(")
		if at < 0 {
			return text
		}
		return text[:at+1] + consts[r.IntN(len(consts))] + text[at+1:]
	},
	func(_ *rand.Rand, text string, token func() (int, int)) string {
		return strings.ReplaceAll(text, "\n", "\r\n")
	},
	func(_ *rand.Rand, text string, token func() (int, int)) string { return "\ufeff" + text },
}

func mangle(r *rand.Rand, text string) string {
	for range 1 + r.IntN(2) {
		at := tokenPattern.FindAllStringIndex(text, -1)
		if len(at) < 2 || len(text) > 200<<10 {
			return text
		}
		text = mangles[r.IntN(len(mangles))](r, text, func() (int, int) { p := at[r.IntN(len(at))]; return p[0], p[1] })
	}
	return text
}

// TestMangledModels changes the models that ship in ways that nobody means. Whatever comes of it, no pass
// fails or takes long, every finding lies in the text, and what is formatted stays what it is: formatting it
// again changes nothing, and it is the same model.
func TestMangledModels(t *testing.T) {
	n, seed := 250, uint64(7)
	if s := os.Getenv("MTC_MUTANTS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	if s := os.Getenv("MTC_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	files, err := filepath.Glob("../models/*.mt")
	if err != nil || len(files) == 0 {
		t.Fatal("no models", err)
	}
	files = append(files, "testdata/syntax.mt")
	texts := map[string]string{}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(text)
	}
	r := rand.New(rand.NewPCG(seed, 3))
	bare := map[string]bool{}
	for i := range n {
		path := files[i%len(files)]
		text := mangle(r, texts[path])
		if r.IntN(3) == 0 {
			text = mutate(r, text)
		}
		// Of the large ones only the front half is asked, but every tenth time.
		small := slices.Contains([]string{"nano.mt", "et_moe_nano.mt", "syntax.mt"}, filepath.Base(path))
		run := Check
		if small && i%2 == 0 || i%10 == 9 {
			run = Compile
		}
		what := func() string { return fmt.Sprintf("%s, %d:\n%q", path, i, clipText(text)) }
		l := &diag.List{}
		var res *Result
		if took := cputime.Of(func() { res, err = run(context.Background(), Options{Path: path, Text: []byte(text)}, l) }); took > 60e9 {
			t.Errorf("took %s: %s", took, what())
		}
		if (err != nil) != l.HasErrors() {
			t.Errorf("error %v with %d findings: %s", err, l.Len(), what())
		}
		for _, d := range l.Sorted() {
			s := d.Span()
			switch {
			case strings.HasPrefix(d.Code, "MT00"):
				t.Fatalf("%s %q: %s", d.Message, d.Notes, what())
			case !s.Valid() && d.Code != "MT0410" && d.Path == "":
				t.Errorf("%s %s has no place: %s", d.Code, d.Message, what())
			case s.Valid() && (s.Start < 0 || s.Start > s.End || s.End > len(s.File.Text)):
				t.Errorf("%s %s lies outside of the text: %s", d.Code, d.Message, what())
			}
			if d.Severity == diag.Error && len(d.Help) == 0 && len(d.Notes) == 0 && len(d.Labels) < 2 {
				bare[d.Code+" "+quotedWords.ReplaceAllString(d.Message, "`…`")] = true
			}
		}
		formatted(t, path, text, run, res, err != nil, what)
		if t.Failed() {
			return
		}
	}
	if testing.Verbose() {
		for m := range bare {
			t.Log("no help: ", m)
		}
	}
}

// formatted holds the layout of a text to what is said of it above; first is what was found of the text.
func formatted(t *testing.T, path, text string, run func(context.Context, Options, *diag.List) (*Result, error), first *Result, failed bool, what func() string) {
	once, err := format.Source(source.New(path, []byte(text)))
	if err != nil {
		return // an error of the text, or too large
	}
	again, err := format.Source(source.New(path, once))
	if err != nil || string(again) != string(once) {
		t.Errorf("formatted again it is other text, %v: %s", err, what())
	}
	l := &diag.List{}
	second, err := run(context.Background(), Options{Path: path, Text: append([]byte{}, once...)}, l)
	if (err != nil) != failed {
		t.Errorf("formatted it has other findings, %v: %s", err, what())
	}
	if err == nil && !failed && first.Plan != nil && (first.Plan.ModelHash != second.Plan.ModelHash || !reflect.DeepEqual(first.Plan.Tasks, second.Plan.Tasks)) {
		t.Errorf("formatted it is another model: %s", what())
	}
}

func clipText(text string) string {
	if len(text) > 6000 {
		return text[:6000] + "..."
	}
	return text
}
