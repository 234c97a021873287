package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/lang/diag"
)

var codeLiteral = regexp.MustCompile(`"(MT[0-9]{4})"`)

// usedCodes walks the Go sources of the module, tests aside, for codes in quotes.
func usedCodes(t *testing.T) map[string]string {
	t.Helper()
	used := map[string]string{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "build" || name == "runs" || name == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range codeLiteral.FindAllSubmatch(text, -1) {
			used[string(m[1])] = path
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// TestEveryCodeHasAPage, and every page a code.
func TestEveryCodeHasAPage(t *testing.T) {
	used := usedCodes(t)
	if len(used) < 20 {
		t.Fatalf("only %d codes found: is the walk in the right folder?", len(used))
	}
	for code, path := range used {
		if _, ok := diag.PageOf(code); !ok {
			t.Errorf("%s (%s) has no page lang/diag/pages/%s.md", code, path, code)
		}
	}
	for _, p := range diag.Pages() {
		if used[p.Code] == "" {
			t.Errorf("page %s explains a code that nothing reports", p.Code)
		}
		if p.Title == "" || strings.HasPrefix(p.Title, "#") || len(p.Text) < 60 {
			t.Errorf("page %s has no title or no text", p.Code)
		}
	}
}

// TestPageExamples: the wrong example of a page gives exactly its code, the mended one nothing.
func TestPageExamples(t *testing.T) {
	for _, p := range diag.Pages() {
		wrong := 0
		for _, ex := range p.Examples() {
			codes, text := diagnose(t, ex)
			want := p.Code
			if ex.Right {
				want = ""
			} else {
				wrong++
			}
			if codes != want {
				t.Errorf("%s: example (right: %v) gives %q, want %q:\n%s\n%s", p.Code, ex.Right, codes, want, ex.Text, text)
			}
		}
		if front := p.Code < "MT0320" && p.Code > "MT0100"; front && wrong == 0 && !withoutExample[p.Code] {
			t.Errorf("%s shows no text that triggers it", p.Code)
		}
	}
}

// withoutExample are the codes of texts that are too large to show, or of what is not there yet.
var withoutExample = map[string]bool{"MT0104": true, "MT0211": true}

// diagnose returns the codes that an example gives, and the findings as text.
func diagnose(t *testing.T, ex diag.Example) (codes, text string) {
	t.Helper()
	files := ex.File()
	o := compiler.Options{
		Path: "m.mt",
		ReadFile: func(path string) ([]byte, error) {
			if s, ok := files[filepath.Base(path)]; ok {
				return []byte(s), nil
			}
			return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
		},
	}
	run := compiler.Check
	for i := 0; i < len(ex.Flags); i++ {
		switch f := ex.Flags[i]; f {
		case "compile":
			run = compiler.Compile
		case "--set", "--model", "--recompute", "--micro-batch":
			i++
			v := ex.Flags[i]
			switch f {
			case "--set":
				o.Set = append(o.Set, v)
			case "--model":
				o.Model = v
			case "--recompute":
				o.Recompute = v
			case "--micro-batch":
				fmt.Sscan(v, &o.MicroBatch)
			}
		default:
			t.Fatalf("unknown flag %s in an example", f)
		}
	}
	var l diag.List
	_, err := run(context.Background(), o, &l)
	if err != nil && l.Err() == nil {
		t.Fatal(err)
	}
	set := map[string]bool{}
	for _, d := range l.Sorted() {
		if d.Code == "MT0325" && ex.In == "model" {
			continue // the forward around the example's block does not call it
		}
		set[d.Code] = true
	}
	var list []string
	for c := range set {
		list = append(list, c)
	}
	sort.Strings(list)
	var b bytes.Buffer
	diag.Render(&b, &l, diag.Text)
	return strings.Join(list, " "), b.String()
}
