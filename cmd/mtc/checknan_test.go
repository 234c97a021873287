package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const overflowing = `model bad(D = 16, L = 2, H = 2, V = 256) {
  init normal(0.05)
  block layer(x, big) {
    h = attn_norm: rmsnorm(x)
    a = attention(q: linear(h, D), k: linear(h, D), v: linear(h, D), heads = H, causal)
    x += o: linear(a, D, init = normal(big))
    h = mlp_norm: rmsnorm(x)
    x += down: linear(up: linear(h, 4 * D, init = normal(big)), D, init = normal(big))
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L as i { layer(x, big = if i == 1 then 1e25 else 0.05) }
    return head: linear(norm: rmsnorm(x), V)
  }
}
train { seq = 16; batch = 4 rows; steps = 3; clip = 1.0; lr = 1e-3 }
`

// The first value that is not finite is found where it is made; where all are finite, checks
// change nothing; and the next run without the flag has none.
func TestCheckNaN(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build programs with")
	}
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("bad.mt", overflowing)
	write("good.mt", strings.Replace(overflowing, "1e25", "0.05", 1))
	write("text.txt", strings.Repeat("the slab leaves the host and comes back. ", 100))
	code, _, errw := call("run", "bad.mt", "--data", "text.txt", "--check-nan")
	for _, want := range []string{"MT0631", "of `linear` at bad.mt:8 is", "Inf in row 0, column", "forward of layer[1], micro-batch 0 (bad.mt:12)"} {
		if code != exitInput || !strings.Contains(errw, want) {
			t.Errorf("exit %d, no %q in\n%s", code, want, errw)
		}
	}
	succeed(t, "run", "good.mt", "--data", "text.txt", "--check-nan", "--out", "checked")
	checked, err := os.ReadFile(filepath.Join("build", "good", "template_layer_gen.go"))
	if err != nil {
		t.Fatal(err)
	}
	succeed(t, "run", "good.mt", "--data", "text.txt", "--out", "plain")
	plain, err := os.ReadFile(filepath.Join("build", "good", "template_layer_gen.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(checked), "finite.Check(") || strings.Contains(string(plain), "finite.Check(") {
		t.Error("checks are to be in the run that asked for them alone")
	}
	digest := func(dir string) (int, string, int) {
		run := exec.Command(filepath.Join("build", "good", "bad"), "--data", "text.txt", "--out", dir)
		path := filepath.Join(t.TempDir(), "digest")
		run.Env = append(os.Environ(), "MTC_DIGEST="+path)
		text, err := run.CombinedOutput()
		if run.ProcessState == nil {
			t.Fatal(err)
		}
		lines, _ := os.ReadFile(path)
		return run.ProcessState.ExitCode(), string(text), strings.Count(string(lines), "\n")
	}
	if code, text, _ := digest("unchecked"); code != exitUsage || !strings.Contains(text, "without checks") {
		t.Errorf("a digest of a program without checks: exit %d\n%s", code, text)
	}
	succeed(t, "compile", "good.mt", "--check-nan")
	if code, text, n := digest("digested"); code != 0 || n < 100 {
		t.Errorf("a digest: exit %d, %d lines\n%s", code, n, text)
	}
	a, b := openTensors(t, filepath.Join("checked", "step-000003", "weights.safetensors")), openTensors(t, filepath.Join("plain", "step-000003", "weights.safetensors"))
	for i := range a.Tensors {
		x, y := floats(t, a, a.Tensors[i].Name), floats(t, b, a.Tensors[i].Name)
		for j := range x {
			if x[j] != y[j] {
				t.Fatalf("%s differs with checks", a.Tensors[i].Name)
			}
		}
	}
	succeed(t, "compile", "good.mt", "--target", "cuda", "--set", "train.precision=bf16", "--check-nan", "--no-build", "-o", "gpu")
	gpu, err := os.ReadFile(filepath.Join("gpu", "template_layer_gen.go"))
	if err != nil || !strings.Contains(string(gpu), "Half: true,") {
		t.Errorf("checks for a GPU do not look at bf16 (%v)", err)
	}
}
