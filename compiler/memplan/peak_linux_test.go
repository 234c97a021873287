package memplan_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/megatrain/mtc/codegen"
	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/memplan"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/plan"
)

// mid is a decoder whose state is most of its memory: 17 M parameters.
const mid = `model mid(D = 320, L = 8, H = 5, F = 960, V = 4096) {
  init normal(0.02)
  block layer(x) {
    h = attn_norm: rmsnorm(x)
    a = attention(q: linear(h, D), k: linear(h, D), v: linear(h, D), heads = H, causal)
    x += o: linear(a, D)
    h = mlp_norm: rmsnorm(x)
    x += down: linear(silu(gate: linear(h, F)) * up: linear(h, F), D)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D) + wpe: embed(position, 128, D)
    repeat L { layer(x) }
    return head: linear(norm: rmsnorm(x), V)
  }
}
train {
  data      = "x"
  seq       = 128
  batch     = 512 tokens
  steps     = 4
  optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.1)
  lr        = constant(peak = 1e-3)
  clip      = 1.0
  seed      = 1
}
`

// The process of a program takes at its peak what the plan says, within 5 %.
func TestMeasuredPeakIsThePlans(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs programs")
	}
	nano := compiler.Options{Path: "../../models/nano.mt", Set: []string{"train.batch=2048 tokens"}}
	streamed := compiler.Options{Path: "mid.mt", Text: []byte(mid)}
	streamed.Placement, streamed.Groups, streamed.MicroBatch, streamed.Recompute = "stream", 2, 1, "all"
	tasks := compiler.Options{Path: "../../models/nano.mt", Set: []string{"L=40", "D=64", "F=64", "train.seq=32", "train.batch=1024 tokens"}}
	tasks.MicroBatch = 1
	for name, o := range map[string]compiler.Options{"resident": nano, "streamed": streamed, "many tasks": tasks} {
		t.Run(name, func(t *testing.T) {
			p, binary := built(t, o)
			dev, host := memplan.Peak(p)
			planned := dev + host + memplan.RuntimeBytes(p)
			used := peakOf(t, binary)
			off := float64(used-planned) / float64(planned)
			t.Logf("planned %d bytes, used %d: %+.1f %%", planned, used, 100*off)
			if off > 0.05 || off < -0.05 {
				t.Errorf("planned %d bytes, used %d: %+.1f %%", planned, used, 100*off)
			}
		})
	}
}

func built(t *testing.T, o compiler.Options) (*plan.Plan, string) {
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
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	binary, err := codegen.Build(context.Background(), dir, res.Plan.Model)
	if err != nil {
		t.Fatal(err)
	}
	return res.Plan, binary
}

// peakOf trains four steps and returns the peak resident size in bytes.
func peakOf(t *testing.T, binary string) int64 {
	t.Helper()
	dir := t.TempDir()
	var text strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&text, "line %d of a text to train on\n", i)
	}
	data := filepath.Join(dir, "data.txt")
	if err := os.WriteFile(data, []byte(text.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "--steps", "4", "--data", data, "--out", filepath.Join(dir, "run"), "--threads", "2")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
}
