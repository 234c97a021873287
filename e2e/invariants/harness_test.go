// Package invariants tests what must hold of every program, on a small model of each family:
// placements, recompute, micro-batches, threads and interruptions change no bit of a result,
// or, where the order of sums is another, no more than rounding does.
package invariants

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/megatrain/mtc/codegen"
	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
)

// families are the small models of testdata/models: one of each family.
var families = []string{"gpt2", "llama", "qwen", "window", "threshold", "choice", "topk"}

// stepwise tells whether a family has routers that look at a whole step, whose micro-batches are then
// one group.
func stepwise(family string) bool { return family == "choice" || family == "topk" }

// routed tells whether a family has routers.
func routed(family string) bool {
	return slices.Contains([]string{"threshold", "choice", "topk"}, family)
}

func TestMain(m *testing.M) {
	// Without debug information a program links in less time; there are many.
	os.Setenv("GOFLAGS", strings.TrimSpace(os.Getenv("GOFLAGS")+" -ldflags=-w"))
	// Tests wait for programs together (batch_test.go); running is limited below.
	flag.Parse()
	flag.Set("test.parallel", "64")
	code := m.Run()
	if programs.dir != "" {
		os.RemoveAll(programs.dir)
	}
	os.Exit(code)
}

// generate compiles a model and writes its program's sources to a fresh folder; edit may
// change them first.
func generate(t *testing.T, o compiler.Options, edit func(files map[string][]byte)) (dir string, res *compiler.Result) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build programs with")
	}
	var diags diag.List
	res, err := compiler.Compile(context.Background(), o, &diags)
	if err != nil {
		t.Fatal(err)
	}
	module, err := codegen.FindModule("")
	if err != nil {
		t.Fatal(err)
	}
	files, err := codegen.Generate(codegen.Input{Program: res.Program, Plan: res.Plan, Module: module})
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(files)
	}
	dir = t.TempDir()
	for name, text := range files {
		writeFile(t, filepath.Join(dir, name), text)
	}
	return dir, res
}

// build makes a program. Under the race detector there is nothing to gain from it: the program
// would be without.
func build(t *testing.T, o compiler.Options, edit func(files map[string][]byte)) (binary string, res *compiler.Result) {
	t.Helper()
	if raceOn {
		t.Skip("not under -race")
	}
	dir, res := generate(t, o, edit)
	binary, err := codegen.Build(context.Background(), dir, res.Plan.Model)
	if err != nil {
		t.Fatal(err)
	}
	return binary, res
}

// buildRaced makes a program with the race detector.
func buildRaced(t *testing.T, o compiler.Options, edit func(files map[string][]byte)) (binary string) {
	t.Helper()
	if !raceOn {
		t.Skip("runs under -race")
	}
	dir, _ := generate(t, o, edit)
	cmd := exec.Command("go", "build", "-race", "-mod=mod", "-buildvcs=false", "-o", "raced", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "GOWORK=off")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return filepath.Join(dir, "raced")
}

// running bounds how many programs run at a time.
var running = make(chan struct{}, runtime.NumCPU())

// run runs a program and returns what it printed; it must end well.
func run(t *testing.T, binary string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Dir = t.TempDir()
	cmd.Stdout, cmd.Stderr = &out, &out
	running <- struct{}{}
	defer func() { <-running }()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%s", filepath.Base(binary), args, err, &out)
	}
	return out.String()
}

// corpus writes n bytes of made-up words in three files and returns their folder. It is small,
// so that a dozen steps of the families go over it more than once.
func corpus(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	x := uint32(2463534242)
	for i := range 3 {
		var b bytes.Buffer
		for b.Len() < n/3 {
			x ^= x << 13
			x ^= x >> 17
			x ^= x << 5
			b.WriteString([]string{"the ", "slab ", "leaves ", "a slot ", "and ", "returns;\n", "lane ", "waits "}[x>>9%8])
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.txt", i)), b.Bytes()[:n/3], 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// outcome is what a training run left.
type outcome struct {
	dir     string
	tensors map[string][]byte // weights and moments by name
	lines   []string          // metrics without what differs from run to run: times
}

// train runs a program's training in a run folder and reads what it left.
func train(t *testing.T, binary, out string, args ...string) *outcome {
	t.Helper()
	run(t, binary, append([]string{"train", "--out", out}, args...)...)
	return read(t, out)
}

func read(t *testing.T, out string) *outcome {
	t.Helper()
	c, err := checkpoint.Latest(out)
	if err != nil {
		t.Fatal(err)
	}
	o := &outcome{dir: out, tensors: map[string][]byte{}}
	files := []string{checkpoint.WeightsFile, checkpoint.OptimizerFile}
	if _, err := os.Stat(filepath.Join(c.Path, checkpoint.RouterFile)); err == nil {
		files = append(files, checkpoint.RouterFile)
	}
	for _, name := range files {
		if err := c.Load(name, func(x *safetensors.Tensor) (checkpoint.Use, error) {
			text := make([]byte, x.Bytes)
			o.tensors[x.Name] = text
			return func(at int64, b []byte) { copy(text[at:], b) }, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(filepath.Join(out, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var line map[string]any
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", s.Text(), err)
		}
		delete(line, "ms")
		delete(line, "tokens_per_s")
		text, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		o.lines = append(o.lines, string(text))
	}
	return o
}

// same compares two runs bit for bit: every weight and moment, and the metrics of every step.
func same(t *testing.T, what string, got, want *outcome) {
	t.Helper()
	// 12 steps, and evaluations after 5, 10 and the last.
	if len(want.tensors) < 6 || len(got.tensors) != len(want.tensors) || len(want.lines) != 15 {
		t.Fatalf("%s: %d tensors against %d, %d lines", what, len(got.tensors), len(want.tensors), len(want.lines))
	}
	for name, w := range want.tensors {
		if !bytes.Equal(got.tensors[name], w) {
			t.Errorf("%s: %s differs", what, name)
		}
	}
	g, w := strings.Join(got.lines, "\n"), strings.Join(want.lines, "\n")
	if g != w {
		t.Errorf("%s: metrics\n%s\nwant\n%s", what, g, w)
	}
}

// fails runs a program that must fail, and returns its exit code and what it printed.
func fails(t *testing.T, binary string, args ...string) (code int, text string) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("%v did not fail: %v\n%s", args, err, out)
	}
	return exit.ExitCode(), string(out)
}

// checkpointOf is the newest checkpoint of a run folder.
func checkpointOf(t *testing.T, dir string) string {
	t.Helper()
	c, err := checkpoint.Latest(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c.Path
}

// keepOnly removes all checkpoints of a run but that of one step.
func keepOnly(t *testing.T, dir string, step int64) {
	t.Helper()
	all, err := checkpoint.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	kept := false
	for _, c := range all {
		if c.Step == step {
			kept = true
		} else if err := os.RemoveAll(c.Path); err != nil {
			t.Fatal(err)
		}
	}
	if !kept {
		t.Fatalf("no checkpoint of step %d among %v", step, all)
	}
}

func writeFile(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o666); err != nil {
		t.Fatal(err)
	}
}

// says reports whether a program's output has a text, wherever the lines of a message were broken.
func says(output, text string) bool {
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	return strings.Contains(flat(output), flat(text))
}
