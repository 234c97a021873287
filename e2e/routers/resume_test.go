package routers

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
)

// text writes some files to train on and returns their folder.
func text(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	x := uint32(2463534242)
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
		var b bytes.Buffer
		for b.Len() < 700 {
			x ^= x << 13
			x ^= x >> 17
			x ^= x << 5
			b.WriteString([]string{"the ", "router ", "sends ", "a token ", "to an expert;\n"}[x>>9%5])
		}
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// train runs a program's training and returns the run's newest checkpoint.
func train(t *testing.T, name, precision, out string, args ...string) *checkpoint.Checkpoint {
	t.Helper()
	cmd := exec.Command(program(t, name, precision), append([]string{"train", "--out", out}, args...)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, text)
	}
	c, err := checkpoint.Latest(out)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestResumedInWarmUp: a run that stops within the warm-up of its routers and goes on is the
// run that did not stop, bit for bit. Of another program, which cuts a step into other
// micro-batches, it is so but for rounding.
func TestResumedInWarmUp(t *testing.T) {
	onEach(t, func(t *testing.T, precision string) {
		data := []string{"--data", text(t), "--holdout", "0.4"}
		for _, kind := range append([]string{"biased"}, kinds...) {
			whole := train(t, kind, precision, filepath.Join(t.TempDir(), "run"), data...)
			dir := filepath.Join(t.TempDir(), "run")
			train(t, kind, precision, dir, append(data, "--save-every", "4")...)
			for _, step := range []string{"step-000008", "step-000012"} {
				if err := os.RemoveAll(filepath.Join(dir, step)); err != nil {
					t.Fatal(err)
				}
			}
			other := filepath.Join(t.TempDir(), "run")
			if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			resumed := train(t, kind, precision, dir, "--resume")
			for _, file := range []string{checkpoint.WeightsFile, checkpoint.OptimizerFile, checkpoint.RouterFile} {
				a, b := bytesOf(t, whole, file), bytesOf(t, resumed, file)
				if !bytes.Equal(a, b) {
					t.Errorf("%s: %s of the resumed run is another", kind, file)
				}
			}
			if kind != "threshold" {
				continue
			}
			cut := train(t, "threshold-2", precision, other, "--resume")
			limit := 0.03
			if precision == "bf16" {
				limit = 0.3
			}
			for _, r := range []string{"layer[1].moe", "layer[2].moe"} {
				most(t, "in other micro-batches, "+r, cutoffsOf(t, cut, r), cutoffsOf(t, whole, r), limit)
			}
		}
	})
}

func bytesOf(t *testing.T, c *checkpoint.Checkpoint, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(c.Path, file))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// cutoffsOf are a router's in a checkpoint.
func cutoffsOf(t *testing.T, c *checkpoint.Checkpoint, router string) (out []float64) {
	t.Helper()
	f, err := safetensors.Open(filepath.Join(c.Path, checkpoint.RouterFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x := f.Lookup(router + ".router.threshold")
	if x == nil {
		var names []string
		for i := range f.Tensors {
			names = append(names, f.Tensors[i].Name)
		}
		t.Fatalf("%s has no cutoffs in %s", router, strings.Join(names, ", "))
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(f.Data(x)); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < b.Len(); i += 4 {
		out = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(b.Bytes()[i:]))))
	}
	return out
}
