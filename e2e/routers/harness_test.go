// Package routers tests what must hold of whole models with a mixture of experts, on a CPU and, with
// programs that were built before, on a machine with a GPU and no compiler:
//
//	MTC_BUILD=DIR go test ./e2e/routers -run TestBuild   builds the programs for CUDA
//	MTC_PROGRAMS=DIR routers.test                        runs them
//
// Each test gives a program weights, tokens and cutoffs (debug-step) and looks at what comes of them.
package routers

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/megatrain/mtc/codegen"
	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
)

// Sizes of the models.
const (
	rows  = 8
	seq   = 16
	vocab = 256
)

// still keeps the weights as they are, as far as f32 can tell.
const still = "train.lr=constant(peak = 1e-12)"

// variants are the programs that tests run: a model of testdata or ../invariants and how it is compiled.
var variants = map[string]struct {
	model string
	o     compiler.Options
}{
	"threshold":       {"threshold", compiler.Options{MicroBatch: 8, Prefill: 1}},
	"threshold-chunk": {"threshold", compiler.Options{MicroBatch: 8, Prefill: 3}},
	"threshold-whole": {"threshold", compiler.Options{MicroBatch: 8, Prefill: 16}},
	"threshold-2":     {"threshold", compiler.Options{MicroBatch: 2, Prefill: 1}},
	"choice":          {"choice", compiler.Options{MicroBatch: 8}},
	"threshold-again": {"threshold", compiler.Options{MicroBatch: 2, Groups: 1, Recompute: "all", InputEvery: 2}},
	"choice-again":    {"choice", compiler.Options{MicroBatch: 1, Recompute: "all", InputEvery: 3, Placement: "stream"}},
	"topk-again":      {"topk", compiler.Options{MicroBatch: 1, Recompute: "all", InputEvery: 2, Placement: "stream", SaveInputs: "all"}},
	"choice-1":        {"choice", compiler.Options{MicroBatch: 1}},
	"topk-1":          {"topk", compiler.Options{MicroBatch: 1}},
	"biased":          {"biased", compiler.Options{MicroBatch: 8, Prefill: 1}},
	"biased-whole":    {"biased", compiler.Options{MicroBatch: 8, Prefill: 16}},
	"biased-2":        {"biased", compiler.Options{MicroBatch: 2}},
	"biased-again":    {"biased", compiler.Options{MicroBatch: 2, Recompute: "all", InputEvery: 2, Placement: "stream", GradHome: "device"}},
	"topk":            {"topk", compiler.Options{MicroBatch: 8}},
	"still":           {"threshold", compiler.Options{MicroBatch: 8, Set: []string{still}}},
	"still-4":         {"threshold", compiler.Options{MicroBatch: 4, Groups: 1, Set: []string{still}}},
	"still-2":         {"threshold", compiler.Options{MicroBatch: 2, Set: []string{still}}},
	"still-groups":    {"threshold", compiler.Options{MicroBatch: 2, Groups: 2, Placement: "stream", Set: []string{still}}},
	"still-free":      {"threshold", compiler.Options{MicroBatch: 1, Groups: 4, Placement: "stream", Resident: "2", Set: []string{still, "train.clip=none"}}},
	"still-1":         {"threshold", compiler.Options{MicroBatch: 1, Placement: "stream", Recompute: "all", Set: []string{still}}},
	"curves-aux":      {"curves", curve("topk(1, scores = sigmoid, balance = aux(0.01, scope = step))")},
	"curves-lossfree": {"curves", curve("topk(1, scores = sigmoid, balance = lossfree(0.01))")},
	"curves-quantile": {"curves", curve("topk(1, scores = sigmoid, balance = quantile)")},
	"curves-choice":   {"curves", curve("expert_choice(0.25, pool = sequence, ema = 0.9)")},
	"curves-cutoff":   {"curves", curve("threshold(0.25, ema = 0.9, warmup = causal(30))")},
	"curves-warmed":   {"curves", curve("threshold(0.25, ema = 0.9, warmup = expert_choice(30, pool = step))")},
	"still-long":      {"threshold", compiler.Options{MicroBatch: 8, Set: []string{still, "train.steps=200"}}},
}

// curve compiles testdata/curves.mt with a router, a step in one micro-batch.
func curve(router string) compiler.Options {
	return compiler.Options{MicroBatch: 16, Set: []string{"router=" + router}}
}

// kinds are the variants with a kind of router each.
var kinds = []string{"threshold", "choice", "topk"}

// precisions are what programs compute in: those for a CPU f32 alone.
func precisions() []string {
	if os.Getenv("MTC_PROGRAMS") != "" {
		return []string{"f32", "bf16"}
	}
	return []string{"f32"}
}

// onEach runs f for each precision.
func onEach(t *testing.T, f func(t *testing.T, precision string)) {
	for _, p := range precisions() {
		t.Run(p, func(t *testing.T) {
			t.Parallel()
			f(t, p)
		})
	}
}

var programs struct {
	sync.Mutex
	dir   string
	built map[string]string
}

func TestMain(m *testing.M) {
	os.Setenv("GOFLAGS", strings.TrimSpace(os.Getenv("GOFLAGS")+" -ldflags=-w"))
	code := m.Run()
	if programs.dir != "" {
		os.RemoveAll(programs.dir)
	}
	os.Exit(code)
}

// program is the path of a variant's program, built for the CPU unless there are some already.
func program(t *testing.T, name, precision string) string {
	t.Helper()
	if dir := os.Getenv("MTC_PROGRAMS"); dir != "" {
		return filepath.Join(dir, "routers."+name+"."+precision)
	}
	programs.Lock()
	defer programs.Unlock()
	if path := programs.built[name]; path != "" {
		return path
	}
	if programs.dir == "" {
		dir, err := os.MkdirTemp("", "mtc-routers")
		if err != nil {
			t.Fatal(err)
		}
		programs.dir, programs.built = dir, map[string]string{}
	}
	programs.built[name] = build(t, name, "cpu", "f32", filepath.Join(programs.dir, name))
	return programs.built[name]
}

// modelOf is the path of a model.
func modelOf(name string) string {
	path := filepath.Join("testdata", name+".mt")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	return filepath.Join("..", "invariants", "testdata", "models", name+".mt")
}

// build makes a variant's program at a path.
func build(t *testing.T, name, target, precision, path string) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build programs with")
	}
	v := variants[name]
	o := v.o
	o.Target = target
	o.Set = append(slices.Clone(o.Set), "train.precision="+precision)
	o.Path = modelOf(v.model)
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
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var binary string
	if target == "cuda" {
		binary, err = codegen.BuildCUDA(context.Background(), dir, res.Plan.Model, module)
	} else {
		binary, err = codegen.Build(context.Background(), dir, res.Plan.Model)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(binary, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBuild builds every program for CUDA that is not there yet into the folder MTC_BUILD.
func TestBuild(t *testing.T) {
	dir := os.Getenv("MTC_BUILD")
	if dir == "" {
		t.Skip("MTC_BUILD names no folder for programs")
	}
	for name := range variants {
		for _, precision := range []string{"f32", "bf16"} {
			path := filepath.Join(dir, "routers."+name+"."+precision)
			if _, err := os.Stat(path); err != nil {
				build(t, name, "cuda", precision, path)
			}
		}
	}
}

// input is what a program is given.
type input struct {
	weights map[string][]float32
	shapes  map[string][]int64
	tokens  []int32 // [steps, rows, seq + 1]
	targets []int32 // nil: the next tokens
	cutoffs map[string][]float32
}

// drawn makes weights for a program's parameters, and tokens of some steps.
func drawn(t *testing.T, name string, steps int, seed uint64) *input {
	t.Helper()
	o := variants[name].o
	o.Path = modelOf(variants[name].model)
	var diags diag.List
	res, err := compiler.Compile(context.Background(), o, &diags)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	in := &input{weights: map[string][]float32{}, shapes: map[string][]int64{}, cutoffs: map[string][]float32{}}
	for i := range res.Plan.Slabs {
		for _, p := range res.Plan.Slabs[i].Params {
			n := int64(1)
			for _, d := range p.Shape {
				n *= d
			}
			v := make([]float32, n)
			for j := range v {
				switch {
				case strings.HasSuffix(p.Name, ".bias"):
					v[j] = float32(0.15 * r.NormFloat64())
				case len(p.Shape) == 1:
					v[j] = float32(1 + 0.1*r.NormFloat64()) // of a norm
				case strings.HasSuffix(p.Name, "router.weight"):
					v[j] = float32(r.NormFloat64() / math.Sqrt(float64(p.Shape[1])))
				default:
					v[j] = float32(0.15 * r.NormFloat64())
				}
			}
			in.weights[p.Name], in.shapes[p.Name] = v, p.Shape
		}
	}
	for range steps * rows * (seq + 1) {
		in.tokens = append(in.tokens, int32(r.IntN(vocab)))
	}
	return in
}

// row is the tokens of a row of the first step.
func (in *input) row(i int) []int32 { return in.tokens[i*(seq+1) : (i+1)*(seq+1)] }

// result is what a program gave.
type result struct {
	t *testing.T
	f *safetensors.File
}

// try runs a program on an input.
func try(t *testing.T, name, precision string, in *input) *result {
	t.Helper()
	le := binary.LittleEndian
	var entries []safetensors.Entry
	floats := func(name string, shape []int64, v []float32) {
		var b []byte
		for _, x := range v {
			b = le.AppendUint32(b, math.Float32bits(x))
		}
		entries = append(entries, safetensors.Entry{Name: name, DType: "F32", Shape: shape, Data: b})
	}
	ints := func(name string, shape []int64, v []int32) {
		var b []byte
		for _, x := range v {
			b = le.AppendUint32(b, uint32(x))
		}
		entries = append(entries, safetensors.Entry{Name: name, DType: "I32", Shape: shape, Data: b})
	}
	for n, v := range in.weights {
		floats("init."+n, in.shapes[n], v)
	}
	for n, v := range in.cutoffs {
		floats("cutoff."+n, []int64{int64(len(v))}, v)
	}
	ints("tokens", []int64{int64(len(in.tokens)) / (rows * (seq + 1)), rows, seq + 1}, in.tokens)
	if in.targets != nil {
		ints("targets", []int64{int64(len(in.targets)) / (rows * seq), rows, seq}, in.targets)
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, nil, entries); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	from, to := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := os.WriteFile(from, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program(t, name, precision), "debug-step", "--fixture", from, "--dump", to)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, text)
	}
	f, err := safetensors.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &result{t, f}
}

// bytes are a tensor's.
func (r *result) bytes(name string) []byte {
	r.t.Helper()
	x := r.f.Lookup(name)
	if x == nil {
		r.t.Fatalf("there is no tensor %s", name)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(r.f.Data(x)); err != nil {
		r.t.Fatal(err)
	}
	return b.Bytes()
}

// cut is one of n equal parts of a tensor's bytes.
func (r *result) cut(name string, i, n int) []byte {
	r.t.Helper()
	b := r.bytes(name)
	return b[i*len(b)/n : (i+1)*len(b)/n]
}

// f32 and f64 are a tensor's values.
func (r *result) f32(name string) []float64 {
	r.t.Helper()
	b := r.bytes(name)
	out := make([]float64, len(b)/4)
	for i := range out {
		out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
	}
	return out
}

func (r *result) f64(name string) []float64 {
	r.t.Helper()
	b := r.bytes(name)
	out := make([]float64, len(b)/8)
	for i := range out {
		out[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return out
}

// routers are the names of the routers in a result.
func (r *result) routers() (out []string) {
	for i := range r.f.Tensors {
		if n, ok := strings.CutPrefix(r.f.Tensors[i].Name, "count."); ok {
			out = append(out, n)
		}
	}
	if len(out) == 0 {
		r.t.Fatal("the model has no router")
	}
	return out
}

// finite fails where a loss or norm is no number.
func (r *result) finite() {
	r.t.Helper()
	for _, name := range []string{"loss", "norm"} {
		for i, x := range r.f64(name) {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				r.t.Fatalf("the %s of step %d is %v", name, i+1, x)
			}
		}
	}
}

// most fails where two lists differ by more than a limit.
func most(t *testing.T, what string, got, want []float64, limit float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values against %d", what, len(got), len(want))
	}
	for i := range want {
		if d := math.Abs(got[i] - want[i]); !(d <= limit) {
			t.Errorf("%s: %v, want %v within %g", what, fmt.Sprint(got), want, limit)
			return
		}
	}
}
