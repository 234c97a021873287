package compiler

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/megatrain/mtc/compiler/passes/front"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/all"
)

// misspell makes a slip that is still nearest to the word itself.
func misspell(word string) string {
	if len(word) > 3 && word[1] != word[2] {
		return word[:1] + word[2:3] + word[1:2] + word[3:]
	}
	return word + word[len(word)-1:]
}

// checkText checks a text as the file at path.
func checkText(path, text string) *diag.List {
	return checkOptions(Options{Path: path, Text: []byte(text)})
}

func checkOptions(o Options) *diag.List {
	l := &diag.List{}
	_, _ = Check(context.Background(), o, l)
	return l
}

// suggests reports whether some help offers word.
func suggests(l *diag.List, word string) bool {
	for _, d := range l.Sorted() {
		for _, h := range d.Help {
			if strings.Contains(h, "did you mean") && strings.Contains(h, word) {
				return true
			}
		}
	}
	return false
}

func messages(l *diag.List) string {
	var out []string
	for _, d := range l.Sorted() {
		out = append(out, fmt.Sprintf("%s %s %q", d.Span(), d.Message, d.Help))
	}
	return strings.Join(out, "\n    ")
}

// TestMisspeltNames misspells every identifier of every model once. A name that refers to
// something must be an error that offers the right spelling; one that declares something must be
// an error where it is used, or be free to choose (a label without a weights map, the name
// of a model, preset or map, a variable).
func TestMisspeltNames(t *testing.T) {
	files, err := filepath.Glob("../models/*.mt")
	if err != nil || len(files) == 0 {
		t.Fatal("no models", err)
	}
	files = append(files, "testdata/syntax.mt")
	seen := map[string]bool{} // lines common to many instances need one look
	for _, path := range files {
		if testing.Short() && !strings.Contains(path, "gpt2") {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		use := ""
		if filepath.Base(path) == "llama.mt" {
			use = "\nmodel tiny = llama(D = 64, L = 2, H = 4, KV = 2, F = 96, V = 256, qk_norm, tied)\n"
		}
		for _, id := range identifiers(text) {
			key := text[lineStart(text, id.at):id.at] + "|" + id.name + "|" + text[id.at+len(id.name):lineEnd(text, id.at)]
			if use == "" && seen[key] {
				continue
			}
			seen[key] = true
			slip := misspell(id.name)
			changed := text[:id.at] + slip + text[id.at+len(id.name):] + use
			o := Options{Path: path, Text: []byte(changed)}
			if use != "" {
				o.Model = "tiny"
			}
			l := &diag.List{}
			_, _ = Check(context.Background(), o, l)
			where := fmt.Sprintf("%s: `%s` for `%s` in %q", filepath.Base(path), slip, id.name, strings.TrimSpace(text[lineStart(text, id.at):lineEnd(text, id.at)]))
			switch {
			case id.declares && !l.HasErrors():
				// A free choice.
			case id.declares:
			case !l.HasErrors():
				t.Errorf("%s: no error", where)
			case !suggests(l, id.name):
				t.Errorf("%s: no suggestion:\n    %s", where, messages(l))
			}
		}
	}
}

type identifier struct {
	name     string
	at       int
	declares bool
}

// identifiers finds the names in a text, without keywords, comments and strings.
func identifiers(text string) []identifier {
	reserved := map[string]bool{}
	for _, w := range strings.Fields("if then else repeat as return block forward model true false none use train weights preset init and or not") {
		reserved[w] = true
	}
	var out []identifier
	prev := ""
	depth := 0
	word := func(r byte) bool { return r == '_' || unicode.IsLetter(rune(r)) || unicode.IsDigit(rune(r)) }
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case strings.HasPrefix(text[i:], "//"):
			i = lineEnd(text, i)
			continue
		case c == '"':
			i += strings.IndexByte(text[i+1:], '"') + 2
			prev = `"`
			continue
		case unicode.IsDigit(rune(c)):
			for i < len(text) && (word(text[i]) || text[i] == '.') {
				i++
			}
			prev = "0"
			continue
		case word(c):
			start := i
			for i < len(text) && word(text[i]) {
				i++
			}
			name := text[start:i]
			rest := strings.TrimLeft(text[i:], " ")
			if !reserved[name] {
				declares := strings.HasPrefix(rest, ":") || // a label
					prev == "model" || prev == "preset" || prev == "weights" || prev == "block" || prev == "as"
				if strings.HasPrefix(rest, "=") && !strings.HasPrefix(rest, "==") && depth == 0 || strings.HasPrefix(rest, "+=") {
					declares = true // an assignment, a train field or an entry: see below
				}
				line := text[lineStart(text, start):start]
				if strings.HasPrefix(strings.TrimSpace(line), "block") || strings.HasPrefix(strings.TrimSpace(line), "model") && strings.Contains(text[start:], "{") && !strings.Contains(line, " = llama(") && depth > 0 {
					declares = declares || prev == "(" || prev == ","
				}
				if strings.HasPrefix(line, "  ") && depth > 0 && prev == "," && !strings.Contains(text[:start], "{") {
					declares = true // the second line of a parameter list
				}
				if name == "i" && (prev == "[" || prev == "{") {
					declares = true // the index of an entry
				}
				out = append(out, identifier{name, start, declares})
			}
			prev = name
			continue
		case c == '(':
			depth++
		case c == ')':
			depth--
		}
		if !unicode.IsSpace(rune(text[i])) {
			prev = text[i : i+1]
		}
		i++
	}
	return out
}

func lineStart(text string, at int) int { return strings.LastIndexByte(text[:at], '\n') + 1 }

func lineEnd(text string, at int) int {
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(text)
}

// inBlock wraps a statement in a model.
func inBlock(stmt string) string {
	return "model m(D = 64, V = 256) {\n  init normal(0.02)\n  block layer(x) {\n    " + stmt + "\n  }\n" +
		"  forward(tokens) {\n    x = wte: embed(tokens, V, D)\n    layer(x)\n    return head: linear(x, V)\n  }\n}\n"
}

// TestMisspeltOptions misspells every name, parameter, flag, word and constructor of every
// op once, from the ops' own declarations, so that a new option is covered when it is added.
func TestMisspeltOptions(t *testing.T) {
	try := func(stmt, want string) {
		t.Helper()
		if l := checkText("m.mt", inBlock(stmt)); !suggests(l, "`"+want+"`") {
			t.Errorf("%s: nothing offers `%s`:\n    %s", stmt, want, messages(l))
		}
	}
	n := 0
	for _, name := range all.Names() {
		d := all.Lookup(name)
		try(fmt.Sprintf("x = w: %s(x)", misspell(name)), name)
		for _, p := range d.Params {
			try(fmt.Sprintf("x = w: %s(x, %s = 1)", name, misspell(p.Name)), p.Name)
			n++
			if p.Kind == op.Bool {
				try(fmt.Sprintf("x = w: %s(x, %s)", name, misspell(p.Name)), p.Name)
				try(fmt.Sprintf("x = w: %s(x, %s = flase)", name, p.Name), "false")
			}
			words := p.Words
			ctors := p.Ctors
			if p.Kind == op.InitKind {
				words = []string{"zero", "one"}
				ctors = []op.Ctor{{Name: "normal", Params: []op.Param{{Name: "std"}}}, {Name: "uniform", Params: []op.Param{{Name: "width"}}}}
			}
			for _, w := range words {
				ctor := false
				for _, c := range ctors {
					ctor = ctor || c.Name == w
				}
				if !ctor {
					try(fmt.Sprintf("x = w: %s(x, %s = %s)", name, p.Name, misspell(w)), w)
				}
				n++
			}
			for _, c := range ctors {
				try(fmt.Sprintf("x = w: %s(x, %s = %s(1.0))", name, p.Name, misspell(c.Name)), c.Name)
				for _, q := range c.Params {
					try(fmt.Sprintf("x = w: %s(x, %s = %s(%s = 1.0))", name, p.Name, c.Name, misspell(q.Name)), q.Name)
					n++
				}
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d options were tried", n)
	}
}

// TestMisspeltTrain misspells every field, unit, word and constructor of the train block.
func TestMisspeltTrain(t *testing.T) {
	try := func(field, want string) {
		t.Helper()
		text := inBlock("x = silu(x)") + "train {\n  " + field + "\n}\n"
		if l := checkText("m.mt", text); !suggests(l, "`"+want+"`") {
			t.Errorf("%s: nothing offers `%s`:\n    %s", field, want, messages(l))
		}
	}
	for _, f := range front.TrainFields() {
		p := f.Param
		try(misspell(p.Name)+" = 1", p.Name)
		for _, u := range f.Units {
			try(p.Name+" = 1 "+misspell(u), u)
		}
		for _, w := range p.Words {
			try(p.Name+" = "+misspell(w), w)
		}
		for _, c := range p.Ctors {
			try(p.Name+" = "+misspell(c.Name)+"(1)", c.Name)
			for _, q := range c.Params {
				try(fmt.Sprintf("%s = %s(%s = 1)", p.Name, c.Name, misspell(q.Name)), q.Name)
			}
		}
	}
}

// TestMisspeltFlags misspells what the command line gives.
func TestMisspeltFlags(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Preset: "medum"}, "medium"},
		{Options{Model: "gpt"}, "gpt2"},
		{Options{Set: []string{"contxt=10"}}, "context"},
		{Options{Set: []string{"train.bacth=8 rows"}}, "batch"},
		{Options{Set: []string{"train.batch=8 rwos"}}, "rows"},
		{Options{Set: []string{"train.lr=cosin(peak = 1)"}}, "cosine"},
		{Options{Set: []string{"seq=128"}}, "train.seq"},
		{Options{Placement: "steram"}, "stream"},
		{Options{Target: "cuad"}, "cuda"},
	} {
		c.o.Path = "../models/gpt2.mt"
		l := &diag.List{}
		_, _ = Compile(context.Background(), c.o, l)
		if !suggests(l, "`"+c.want+"`") {
			t.Errorf("%+v: nothing offers `%s`:\n    %s", c.o, c.want, messages(l))
		}
	}
}
