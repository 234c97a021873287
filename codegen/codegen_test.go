package codegen

import (
	"bytes"
	"context"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/plan"
)

// goldens are the programs kept under testdata/golden: a model with one kind of layer, and
// one with two kinds, chunks, recompute and streaming.
var goldens = []struct {
	dir string
	o   compiler.Options
}{
	{"nano", compiler.Options{Path: "../models/nano.mt"}},
	{"window", compiler.Options{Path: "testdata/window.mt", Placement: "stream", MicroBatch: 4, Recompute: "all"}},
}

func compile(t *testing.T, o compiler.Options) Input {
	t.Helper()
	o.Version = "v0.0.0"
	var diags diag.List
	r, err := compiler.Compile(context.Background(), o, &diags)
	if err != nil {
		t.Fatal(err)
	}
	// The hash covers more than these goldens are about.
	r.Plan.Hash, r.Plan.ModelHash = "0123456789abcdef", "fedcba9876543210"
	return Input{Program: r.Program, Plan: r.Plan}
}

func generate(t *testing.T, in Input) map[string][]byte {
	t.Helper()
	files, err := Generate(in)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestGolden(t *testing.T) {
	if os.Getenv("MTC_UPDATE") != "" {
		m, err := FindModule("")
		if err != nil {
			t.Fatal(err)
		}
		m.Dir = "../../.."
		mod, sum := m.files("golden")
		for name, text := range map[string][]byte{"go.mod": mod, "go.sum": sum} {
			if len(text) == 0 {
				continue
			}
			if err := os.WriteFile(filepath.Join("testdata", "golden", name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, g := range goldens {
		t.Run(g.dir, func(t *testing.T) {
			files := generate(t, compile(t, g.o))
			dir := filepath.Join("testdata", "golden", g.dir)
			if os.Getenv("MTC_UPDATE") != "" {
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				for name, text := range files {
					if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if files[e.Name()] == nil {
					t.Errorf("%s is not generated any more", e.Name())
				}
			}
			for name, text := range files {
				want, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Error(err)
					continue
				}
				if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(text), "\n")); diff != "" {
					t.Errorf("%s differs; MTC_UPDATE=1 rewrites it:\n%s", name, diff)
				}
			}
		})
	}
}

// TestGoldensAreGo vets the golden programs, which type-checks them against the runtime.
func TestGoldensAreGo(t *testing.T) {
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command")
	}
	cmd := exec.Command(tool, "vet", "./...")
	cmd.Dir = filepath.Join("testdata", "golden")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestGeneratedIsGofmtClean(t *testing.T) {
	for _, path := range []string{"testdata/window.mt", "../models/gpt2.mt"} {
		for name, text := range generate(t, compile(t, compiler.Options{Path: path})) {
			if !strings.HasSuffix(name, ".go") {
				continue
			}
			want, err := format.Source(text)
			if err != nil {
				t.Errorf("%s: %s: %v", path, name, err)
			} else if !bytes.Equal(text, want) {
				t.Errorf("%s: %s is not as gofmt writes it:\n%s", path, name, cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(text), "\n")))
			}
		}
	}
}

func TestDeterministic(t *testing.T) {
	o := compiler.Options{Path: "testdata/window.mt", Placement: "stream"}
	a, b := generate(t, compile(t, o)), generate(t, compile(t, o))
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
}

// TestLaunchesNameTheirLine checks that every launch ends in the line of the .mt it came from.
func TestLaunchesNameTheirLine(t *testing.T) {
	for name, text := range generate(t, compile(t, compiler.Options{Path: "testdata/window.mt"})) {
		if !strings.HasPrefix(name, "template_") {
			continue
		}
		open := false
		for line := range strings.Lines(string(text)) {
			launch := strings.Contains(line, "(queue, ")
			ends := strings.Contains(line, "})")
			if (launch && ends || open && strings.HasPrefix(strings.TrimSpace(line), "})")) && !strings.Contains(line, "// window.mt:") {
				t.Errorf("%s: no line in %q", name, line)
			}
			open = launch && !ends || open && !ends
		}
	}
}

func TestRunsExpandToTheTable(t *testing.T) {
	p := compile(t, compiler.Options{Path: "../models/gpt2.mt", Placement: "stream", Recompute: "all"}).Plan
	roundTrip(t, "tasks", p.Tasks, len(p.Tasks)/4)
	roundTrip(t, "buffers", p.Buffers, len(p.Buffers)/4)
}

// roundTrip writes a table as runs, expands them, and wants the table back in fewer rows.
func roundTrip[T any](t *testing.T, name string, table []T, most int) {
	t.Helper()
	v := reflect.ValueOf(table)
	found, _ := findRuns(v)
	var runs []plan.Run[T]
	n := 0
	for _, f := range found {
		r := plan.Run[T]{Times: f.times, First: table[f.start : f.start+f.period]}
		if f.times > 1 {
			for k := range f.period {
				r.Step = append(r.Step, step(v.Index(f.start+k), v.Index(f.start+k+f.period)).Interface().(T))
			}
		}
		n += len(r.First) + len(r.Step)
		runs = append(runs, r)
	}
	if diff := cmp.Diff(table, plan.Expand(runs)); diff != "" {
		t.Errorf("%s differ after Expand:\n%s", name, diff)
	}
	if n > most {
		t.Errorf("%d %s take %d rows, want at most %d", len(table), name, n, most)
	}
	t.Logf("%d %s in %d rows", len(table), name, n)
}

func TestFollows(t *testing.T) {
	task := func(id int, lane uint8, buf plan.BufID) plan.Task {
		return plan.Task{ID: id, Func: plan.Func(lane), Reads: []plan.BufID{buf}}
	}
	for _, c := range []struct {
		name  string
		tasks []plan.Task
		runs  int
	}{
		{"numbers grow evenly", []plan.Task{task(1, 1, 5), task(2, 1, 7), task(3, 1, 9), task(4, 1, 11)}, 1},
		{"one number jumps", []plan.Task{task(1, 1, 5), task(2, 1, 7), task(3, 1, 9), task(4, 1, 12)}, 2},
		{"a word changes", []plan.Task{task(1, 1, 5), task(2, 1, 7), task(3, 2, 9), task(4, 2, 11)}, 4},
		{"two alternate", []plan.Task{task(1, 1, 5), task(2, 2, 7), task(3, 1, 6), task(4, 2, 8), task(5, 1, 7), task(6, 2, 9)}, 1},
	} {
		if got, _ := findRuns(reflect.ValueOf(c.tasks)); len(got) != c.runs {
			t.Errorf("%s: %d runs, want %d", c.name, len(got), c.runs)
		}
	}
}

func TestTemplateFilesDifferOnEveryFileSystem(t *testing.T) {
	in := compile(t, compiler.Options{Path: "testdata/window.mt"})
	in.Program.Templates[1].Name, in.Program.Templates[2].Name = "a_b", "aB"
	var names []string
	for name := range generate(t, in) {
		names = append(names, strings.ToLower(name))
	}
	slices.Sort(names)
	if n := len(slices.Compact(names)); n != len(in.Program.Templates)+3 {
		t.Errorf("%d files: %v", n, names)
	}
}
