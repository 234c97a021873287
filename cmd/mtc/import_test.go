package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/hf"
)

// foreignModels are the folders that tools/fixtures/hf.py makes, by name.
func foreignModels(t *testing.T) map[string]string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("..", "..", "runtime", "hf", "testdata", "*.expected.safetensors"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	out := map[string]string{}
	for _, path := range found {
		abs, err := filepath.Abs(strings.TrimSuffix(path, ".expected.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(abs)] = abs
	}
	return out
}

// succeed runs mtc, which must end well.
func succeed(t *testing.T, args ...string) (out, errw string) {
	t.Helper()
	code, out, errw := call(args...)
	if code != 0 {
		t.Fatalf("mtc %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errw)
	}
	return out, errw
}

// A folder that transformers wrote goes through import, compile and --from to the logits, loss
// and gradients that transformers computes, and back to the same bytes.
func TestImportedModelsEqualTransformers(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build programs with")
	}
	for name, folder := range foreignModels(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			model, build := filepath.Join(dir, "m.mt"), filepath.Join(dir, "build")
			succeed(t, "import", folder, "-o", model)
			settings := []string{"train.seq=12", "train.batch=2 rows", "train.steps=1"}
			args := []string{"compile", model, "-o", build}
			for _, s := range settings {
				args = append(args, "--set", s)
			}
			succeed(t, args...)
			dump := filepath.Join(dir, "dump.safetensors")
			text, err := exec.Command(filepath.Join(build, "m"), "debug-step", "--from", folder,
				"--fixture", folder+".expected.safetensors", "--dump", dump).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			got, want := openTensors(t, dump), openTensors(t, folder+".expected.safetensors")
			near(t, "logits", floats(t, got, "logits"), floats(t, want, "logits"))
			near(t, "loss", floats(t, got, "loss"), floats(t, want, "loss"))
			foreign := gradients(t, model, settings, got)
			for i := range want.Tensors {
				if tensor := want.Tensors[i].Name; strings.HasPrefix(tensor, "grad.") {
					near(t, tensor, floats(t, foreign, strings.TrimPrefix(tensor, "grad.")), floats(t, want, tensor))
				}
			}
			run, back := filepath.Join(dir, "run"), filepath.Join(dir, "back")
			succeed(t, "run", build, "--from", folder, "--steps", "0", "--out", run)
			succeed(t, "export", run, "--hf", back)
			sameFolder(t, folder, back)
		})
	}
}

// gradients brings a dump's gradients into the layout of transformers: by an export of a
// checkpoint that has them as its weights.
func gradients(t *testing.T, model string, settings []string, dump *safetensors.File) *safetensors.File {
	t.Helper()
	var l diag.List
	res, err := compiler.Compile(context.Background(), compiler.Options{Path: model, Set: settings}, &l)
	if err != nil {
		t.Fatal(err)
	}
	file := checkpoint.File{Name: checkpoint.WeightsFile}
	for i := range dump.Tensors {
		x := &dump.Tensors[i]
		if path, ok := strings.CutPrefix(x.Name, "grad."); ok {
			data, err := io.ReadAll(dump.Data(x))
			if err != nil {
				t.Fatal(err)
			}
			file.Tensors = append(file.Tensors, safetensors.Entry{Name: path, DType: "F32", Shape: x.Shape, Data: data})
		}
	}
	dir := t.TempDir()
	path, err := checkpoint.Save(dir, checkpoint.State{Hash: res.Plan.ModelHash}, []checkpoint.File{file}, 1)
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	if _, err := hf.Export(out, &hf.Request{Plan: res.Plan, Run: dir, Checkpoint: c}); err != nil {
		t.Fatal(err)
	}
	return openTensors(t, filepath.Join(out, "model.safetensors"))
}

func openTensors(t *testing.T, path string) *safetensors.File {
	t.Helper()
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// floats reads a tensor by name, with the prefix of a base model or without it.
func floats(t *testing.T, f *safetensors.File, name string) []float32 {
	t.Helper()
	for _, prefix := range []string{"model.", "transformer."} {
		if f.Lookup(name) == nil {
			name = strings.TrimPrefix(name, prefix)
		}
	}
	v, err := f.F32(name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// near compares within 1e-4 of the largest value, or of 0.01 where all are smaller: the
// gradient of a key bias is zero but for rounding.
func near(t *testing.T, name string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s has %d values, transformers %d", name, len(got), len(want))
		return
	}
	worst, scale := 0.0, 0.01
	for i := range got {
		d := math.Abs(float64(got[i]) - float64(want[i]))
		if math.IsNaN(d) {
			d = math.Inf(1)
		}
		worst, scale = max(worst, d), max(scale, math.Abs(float64(want[i])))
	}
	if worst > 1e-4*scale {
		t.Errorf("%s differs by %.3g, values reach %.3g", name, worst, scale)
	}
}

// sameFolder compares two folders byte by byte.
func sameFolder(t *testing.T, a, b string) {
	t.Helper()
	names := map[string]bool{}
	for _, dir := range []string{a, b} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names[e.Name()] = true
		}
	}
	for name := range names {
		x, err1 := os.ReadFile(filepath.Join(a, name))
		y, err2 := os.ReadFile(filepath.Join(b, name))
		if err1 != nil || err2 != nil || string(x) != string(y) {
			t.Errorf("%s differs: %v", name, fmt.Sprint(err1, err2))
		}
	}
}
