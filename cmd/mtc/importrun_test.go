package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
)

// copyFolder copies the files of a folder.
func copyFolder(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), filepath.Base(from))
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// A run from a folder trains, is resumed, generates and is exported: same files, same headers,
// other weights; and its tokenizer comes along byte for byte.
func TestImportedRunGoesOn(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build programs with")
	}
	folder := copyFolder(t, foreignModels(t)["llama3"])
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(folder, "tokenizer.json"), `{"model": {"type": "BPE", "vocab": {"a": 5, "b": 7}, "merges": []}}`+"\r\n")
	write(filepath.Join(folder, "chat_template.jinja"), "{{ messages }}")
	write(filepath.Join(folder, "pytorch_model.bin"), "never read")
	var ids []byte
	for i := range 4000 {
		ids = append(ids, byte(i*i%48), 0)
	}
	write(path("ids.bin"), string(ids))
	succeed(t, "import", folder, "-o", path("m.mt"))
	run := []string{"run", path("m.mt"), "--set", "train.seq=16", "--set", "train.batch=2 rows", "--set", "train.width=2", "--data", path("ids.bin"), "--out", path("run")}
	t.Chdir(dir)
	out, _ := succeed(t, append(run, "--from", folder, "--steps", "2", "--set", "train.lr=0.01")...)
	if !strings.Contains(out, "weights from") || !strings.Contains(out, folder) {
		t.Errorf("the table does not say where the weights are from:\n%s", out)
	}
	code, _, errw := call(append(run, "--from", folder, "--resume")...)
	if code != exitUsage || !strings.Contains(errw, "exclude each other") {
		t.Errorf("--from with --resume: exit %d\n%s", code, errw)
	}
	succeed(t, append(run, "--resume", "--steps", "3")...)
	out, _ = succeed(t, "generate", path("run"), "--prompt", "ab", "--tokens", "30", "--temperature", "3")
	if made := strings.Join(strings.Fields(strings.TrimPrefix(out, "ab")), ""); len(made) != 30 || strings.Trim(made, "ab") != "" {
		t.Errorf("something else than the tokenizer's a and b was sampled: %q", out)
	}
	succeed(t, "export", path("run"), "--hf", path("back"))
	for _, name := range []string{"config.json", "generation_config.json", "tokenizer.json", "chat_template.jinja", "model.safetensors.index.json"} {
		a, err1 := os.ReadFile(filepath.Join(folder, name))
		b, err2 := os.ReadFile(filepath.Join(path("back"), name))
		if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %v %v", name, err1, err2)
		}
	}
	if _, err := os.Stat(filepath.Join(path("back"), "pytorch_model.bin")); err == nil {
		t.Error("weights of another kind came along, which are not those of the checkpoint")
	}
	for _, name := range []string{"model-00001-of-00003.safetensors", "model-00003-of-00003.safetensors"} {
		a, b := filepath.Join(folder, name), filepath.Join(path("back"), name)
		x, err := os.ReadFile(a)
		if err != nil {
			t.Fatal(err)
		}
		y, err := os.ReadFile(b)
		if err != nil {
			t.Fatal(err)
		}
		f, err := safetensors.Open(a)
		if err != nil {
			t.Fatal(err)
		}
		if n := f.HeaderBytes(); !bytes.Equal(x[:n], y[:n]) || bytes.Equal(x, y) {
			t.Errorf("%s: the header is to be the same and the weights are not", name)
		}
		f.Close()
	}
	code, _, errw = call("export", path("run"), "--hf", path("back"))
	if code != exitInput || !strings.Contains(errw, "there is something there already") {
		t.Errorf("an export over another: exit %d\n%s", code, errw)
	}
}

// What does not fit is told before anything is built or written.
func TestWeightsThatDoNotFit(t *testing.T) {
	folders := foreignModels(t)
	dir := t.TempDir()
	model := filepath.Join(dir, "m.mt")
	succeed(t, "import", folders["llama2"], "-o", model)
	for _, c := range []struct {
		name string
		args []string
		code int
		want []string
	}{
		{"the weights of another model", []string{"run", model, "--from", folders["qwen3"], "--steps", "0"}, exitInput,
			[]string{"MT0663", "embed_tokens.weight has the shape [48, 20], the model wants [48, 32]", "q_norm.weight of shape [8] is left over: the model has no place for it; so for 2 layers, 0 to 1", "lm_head.weight is missing"}},
		{"another theta", []string{"run", model, "--set", "theta=500000", "--from", folders["llama2"], "--steps", "0"}, exitInput, []string{"theta is 10000 there and 500000 here"}},
		{"no folder", []string{"run", model, "--from", filepath.Join(dir, "nowhere"), "--steps", "0"}, exitInput, []string{"nowhere"}},
		{"no steps without weights", []string{"run", model, "--steps", "0"}, exitUsage, []string{"--steps"}},
		{"an import over a file", []string{"import", folders["llama2"], "-o", model}, exitInput, []string{"is there already"}},
		{"an import of no folder", []string{"import", model}, exitInput, []string{"a folder is wanted"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(dir)
			code, _, errw := call(c.args...)
			if code != c.code {
				t.Errorf("exit %d, not %d", code, c.code)
			}
			for _, w := range c.want {
				if !strings.Contains(errw, w) {
					t.Errorf("no %q in:\n%s", w, errw)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "runs")); err == nil {
				t.Error("a run folder was begun")
			}
		})
	}
}

// An import says as JSON what it found, and its text needs no other file.
func TestImportAsJSON(t *testing.T) {
	folder := foreignModels(t)["qwen2"]
	t.Chdir(t.TempDir())
	out, _ := succeed(t, "import", folder, "--json")
	for _, want := range []string{`"file": "qwen2.mt"`, `"architecture": "Qwen2ForCausalLM"`, `"qkv_bias": "true"`, `"tensors": 27`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in:\n%s", want, out)
		}
	}
	text, err := os.ReadFile("qwen2.mt")
	if err != nil || strings.Contains(string(text), "use ") {
		t.Errorf("%v, or the file uses another:\n%s", err, text)
	}
	if formatted, _ := succeed(t, "fmt", "qwen2.mt"); formatted != string(text) {
		t.Error("the text is not in the canonical layout")
	}
	succeed(t, "check", "qwen2.mt")
}
