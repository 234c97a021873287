package main

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
)

// adapted imports a model, trains adapters on some of its linears for a few steps, and exports
// them both ways. It returns the folder of everything.
func adapted(t *testing.T, base, targets string) (dir string) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build programs with")
	}
	dir = t.TempDir()
	t.Chdir(dir)
	var ids []byte
	for i := range 3000 {
		ids = append(ids, byte(i*i%48), 0)
	}
	if err := os.WriteFile("ids.bin", ids, 0o666); err != nil {
		t.Fatal(err)
	}
	succeed(t, "import", base, "-o", "m.mt")
	out, _ := succeed(t, "run", "m.mt", "--from", base, "--data", "ids.bin", "--out", "run", "--steps", "4",
		"--set", "train.lora=lora(rank = 2, alpha = 6, targets = "+targets+")", "--set", "train.lr=0.03", "--set", "train.eval=none",
		"--set", "train.seq=12", "--set", "train.batch=2 rows", "--set", "train.width=2")
	if !strings.Contains(out, "rank 2, alpha 6") || !strings.Contains(out, "learn") {
		t.Errorf("the table does not say what learns:\n%s", out)
	}
	succeed(t, "export", "run", "--peft", "adapter")
	succeed(t, "export", "run", "--hf", "merged", "--dtype", "f32")
	return dir
}

// peftConfig is what of adapter_config.json a loader goes by.
type peftConfig struct {
	R             int                `json:"r"`
	Alpha         float64            `json:"lora_alpha"`
	Targets       []string           `json:"target_modules"`
	RankPattern   map[string]int     `json:"rank_pattern"`
	AlphaPattern  map[string]float64 `json:"alpha_pattern"`
	FanInFanOut   bool               `json:"fan_in_fan_out"`
	Type          string             `json:"peft_type"`
	Task          string             `json:"task_type"`
	Base          string             `json:"base_model_name_or_path"`
	InferenceMode bool               `json:"inference_mode"`
}

func readPEFT(t *testing.T) (c peftConfig, tensors *safetensors.File) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("adapter", "adapter_config.json"))
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	if tensors, err = safetensors.Open(filepath.Join("adapter", "adapter_model.safetensors")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tensors.Close() })
	return c, tensors
}

// matrix is a tensor of a folder that is one file.
func matrix(t *testing.T, folder, name string) (v []float32, shape []int64) {
	t.Helper()
	f, err := safetensors.Open(filepath.Join(folder, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Lookup(name) == nil {
		t.Fatalf("%s has no %s", folder, name)
	}
	if v, err = f.F32(name); err != nil {
		t.Fatal(err)
	}
	return v, f.Lookup(name).Shape
}

// sameDelta holds a merged weight, less that of the base, against the adapter of its module.
func sameDelta(t *testing.T, c *peftConfig, tensors *safetensors.File, base, module, key, tensor string, transposed bool) {
	t.Helper()
	a, err := tensors.F32("base_model.model." + module + ".lora_A.weight")
	if err != nil {
		t.Fatal(err)
	}
	b, err := tensors.F32("base_model.model." + module + ".lora_B.weight")
	if err != nil {
		t.Fatal(err)
	}
	rank, alpha := c.R, c.Alpha
	if r, ok := c.RankPattern[key]; ok {
		rank, alpha = r, c.AlphaPattern[key]
	}
	old, shape := matrix(t, base, tensor)
	now, _ := matrix(t, "merged", tensor)
	in, out := len(a)/rank, len(b)/rank
	if transposed && !slices.Equal(shape, []int64{int64(in), int64(out)}) || !transposed && !slices.Equal(shape, []int64{int64(out), int64(in)}) {
		t.Fatalf("%s is %v, its adapter is of %d in and %d out", tensor, shape, in, out)
	}
	moved := 0.0
	for o := range out {
		for i := range in {
			delta := 0.0
			for r := range rank {
				delta += float64(b[o*rank+r]) * float64(a[r*in+i])
			}
			at := o*in + i
			if transposed {
				at = i*out + o
			}
			delta *= alpha / float64(rank)
			if d := math.Abs(float64(now[at]) - float64(old[at]) - delta); d > 1e-5 {
				t.Fatalf("%s[%d, %d] moved by %g, the adapter says %g", tensor, o, i, now[at]-old[at], delta)
			}
			moved = max(moved, math.Abs(delta))
		}
	}
	if moved < 1e-4 {
		t.Errorf("%s did not move", tensor)
	}
}

// GPT-2's q, k and v are one matrix there, transposed: their adapters are one of three times the
// rank, in blocks.
func TestAdaptersOfGPT2(t *testing.T) {
	base, err := filepath.Abs(foreignModels(t)["gpt2"])
	if err != nil {
		t.Fatal(err)
	}
	adapted(t, base, "all")
	c, tensors := readPEFT(t)
	if want := []string{"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"}; !slices.Equal(c.Targets, want) || c.R != 2 || c.Alpha != 6 || !c.FanInFanOut ||
		c.RankPattern["attn.c_attn"] != 6 || c.AlphaPattern["attn.c_attn"] != 18 || len(c.RankPattern) != 1 || c.Type != "LORA" || c.Task != "CAUSAL_LM" || c.Base != base || !c.InferenceMode {
		t.Errorf("adapter_config.json says %+v", c)
	}
	if n := len(tensors.Tensors); n != 16 {
		t.Errorf("%d tensors", n)
	}
	for _, m := range []string{"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"} {
		tensor := "transformer.h.1." + m + ".weight"
		sameDelta(t, &c, tensors, base, "transformer.h.1."+m, m, tensor, true)
	}
	b, err := tensors.F32("base_model.model.transformer.h.0.attn.c_attn.lora_B.weight")
	if err != nil {
		t.Fatal(err)
	}
	for o := range 72 {
		for r := range 6 {
			if own := o/24 == r/2; !own && b[o*6+r] != 0 {
				t.Errorf("B[%d, %d] is %g, outside of its block", o, r, b[o*6+r])
			}
		}
	}
}

// Targets of some layers are named whole, those of all by their end; the head has no layer.
func TestAdaptersOfSomeLayers(t *testing.T) {
	base, err := filepath.Abs(foreignModels(t)["qwen2"])
	if err != nil {
		t.Fatal(err)
	}
	adapted(t, base, `[q, "layer[1].down", head]`)
	c, tensors := readPEFT(t)
	if want := []string{"lm_head", "model.layers.1.mlp.down_proj", "self_attn.q_proj"}; !slices.Equal(c.Targets, want) || c.FanInFanOut || len(c.RankPattern) > 0 {
		t.Errorf("adapter_config.json says %+v", c)
	}
	if n := len(tensors.Tensors); n != 8 {
		t.Errorf("%d tensors", n)
	}
	for _, m := range []string{"lm_head", "model.layers.1.mlp.down_proj", "model.layers.0.self_attn.q_proj"} {
		sameDelta(t, &c, tensors, base, m, m, m+".weight", false)
	}
	for _, name := range []string{"model.layers.0.mlp.down_proj.weight", "model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.bias"} {
		a, _ := matrix(t, base, name)
		b, _ := matrix(t, "merged", name)
		if !slices.Equal(a, b) {
			t.Errorf("%s has no adapter and is not the base's", name)
		}
	}
	out, _ := succeed(t, "doctor", "run")
	if !strings.Contains(out, "frozen weights are those of "+base) || !strings.Contains(out, "8 of 8 tensors have moved") {
		t.Errorf("doctor says\n%s", out)
	}
}

// Adapters are tuned on conversations with the base's own tokenizer and template, several to a row,
// in a stream; the best ones answer, and go on.
func TestAdaptersOnConversations(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build programs with")
	}
	base := filepath.Join(t.TempDir(), "base")
	tinyChatModel(t, base)
	t.Chdir(t.TempDir())
	var chats strings.Builder
	for i := range 40 {
		chats.WriteString(`{"messages": [{"role": "user", "content": "say ` + strings.Repeat("a", i%5+1) + `"}, {"role": "assistant", "content": "yes"}]}` + "\n")
	}
	if err := os.WriteFile("chats.jsonl", []byte(chats.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	succeed(t, "import", base, "-o", "m.mt")
	run := []string{"run", "m.mt", "--from", base, "--data", "chats.jsonl", "--out", "run", "--placement", "stream", "--micro-batch", "1",
		"--set", "train.lora=lora(rank = 4, alpha = 32, targets = all)", "--set", "train.lr=0.05", "--set", "train.eval=every(20)", "--set", "train.save=every(20)",
		"--set", "train.seq=64", "--set", "train.batch=2 rows", "--set", "train.documents=packed"}
	out, _ := succeed(t, append(run, "--steps", "40")...)
	if !strings.Contains(out, "linears") {
		t.Errorf("the table does not say what learns:\n%s", out)
	}
	losses := regexp.MustCompile(`step +\d+/40  loss (\S+)`).FindAllStringSubmatch(out, -1)
	if len(losses) != 40 {
		t.Fatalf("%d steps:\n%s", len(losses), out)
	}
	first, _ := strconv.ParseFloat(losses[0][1], 64)
	last, _ := strconv.ParseFloat(losses[39][1], 64)
	if !(last < first-0.1) { // the model is another each time
		t.Errorf("the loss goes from %v to %v", first, last)
	}
	for _, which := range []string{"run", filepath.Join("run", "best")} {
		out, _ = succeed(t, "generate", which, "--chat", "say aaa", "--tokens", "3", "--temperature", "0")
		if strings.TrimSpace(out) == "" {
			t.Errorf("%s has no answer", which)
		}
	}
	succeed(t, append(run[:2:2], append([]string{"--resume", "--steps", "42"}, run[4:]...)...)...)
	succeed(t, "export", "run", "--hf", "tuned")
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json", "config.json", "model.safetensors"} {
		if _, err := os.Stat(filepath.Join("tuned", name)); err != nil {
			t.Error(err)
		}
	}
}
