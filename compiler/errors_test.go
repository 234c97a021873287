package compiler

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/tools/cputime"
)

// golden compares got with a file, or writes the file under MTC_UPDATE=1.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if os.Getenv("MTC_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (MTC_UPDATE=1 writes it)", err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

// args reads the options of a corpus file from its first line, `// args: --set D=1`.
func args(t *testing.T, text []byte, o *Options) (compile bool) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	rest, ok := bytes.CutPrefix(line, []byte("// args: "))
	if !ok {
		return false
	}
	words := strings.Fields(string(rest))
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i := 0; i < len(words); i++ {
		if words[i] == "--compile" {
			compile = true
			continue
		}
		v := words[i+1]
		switch words[i] {
		case "--set":
			o.Set = append(o.Set, v)
		case "--model":
			o.Model = v
		case "--preset":
			o.Preset = v
		case "--dump-after":
			o.DumpAfter = v
		case "--placement":
			o.Placement = v
		case "--target":
			o.Target = v
		case "--recompute":
			o.Recompute = v
		case "--slots":
			o.Slots = number(v)
		case "--groups":
			o.Groups = number(v)
		case "--micro-batch":
			o.MicroBatch = number(v)
		default:
			t.Fatalf("unknown argument %s", words[i])
		}
		i++
	}
	return compile
}

// TestErrorCorpus holds every finding about every file of testdata/errors to its golden. Each
// file must have a finding, no pass may panic, and none may take long.
func TestErrorCorpus(t *testing.T) {
	files, err := filepath.Glob("testdata/errors/*.mt")
	if err != nil || len(files) == 0 {
		t.Fatal("no corpus", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".mt"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			o := Options{Path: path}
			run := Check
			if args(t, text, &o) {
				run = Compile
			}
			l := &diag.List{}
			took := cputime.Of(func() { _, err = run(context.Background(), o, l) })
			if took > 10*time.Second {
				t.Errorf("took %s", took)
			}
			if l.Len() == 0 {
				t.Fatal("nothing was found wrong")
			}
			if (err != nil) != l.HasErrors() {
				t.Errorf("error %v with %d findings", err, l.Len())
			}
			for _, d := range l.Sorted() {
				if strings.HasPrefix(d.Code, "MT00") {
					t.Errorf("internal error: %s", d.Message)
				}
				if d.Severity == diag.Error && len(d.Help) == 0 && len(d.Notes) == 0 && len(d.Labels) < 2 && d.Labels[0].Text == "" {
					t.Logf("no help: %s", d.Message)
				}
				if strings.HasSuffix(d.Message, ".") {
					t.Errorf("a message ends without a full stop: %s", d.Message)
				}
			}
			var b bytes.Buffer
			diag.Render(&b, l, diag.Text)
			golden(t, strings.TrimSuffix(path, ".mt")+".txt", b.String())
		})
	}
	if t.Failed() {
		fmt.Println("MTC_UPDATE=1 go test ./compiler -run TestErrorCorpus rewrites the goldens; read the difference")
	}
}
