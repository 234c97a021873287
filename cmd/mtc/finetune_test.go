package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/data/packed"
	"github.com/megatrain/mtc/runtime/tokenizer"
)

// tinyChatModel writes a model of Qwen2's kind with random weights, a tokenizer of its kind and
// a chat template, as a Hugging Face folder.
func tinyChatModel(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	put := func(name string, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open("../../runtime/tokenizer/testdata/qwen.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	put("tokenizer.json", text)
	tok, err := tokenizer.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	template := `{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`
	config, err := json.Marshal(map[string]any{"eos_token": "<|im_end|>", "bos_token": nil, "chat_template": template})
	if err != nil {
		t.Fatal(err)
	}
	put("tokenizer_config.json", config)
	// More rows than there are tokens, as models have.
	const d, ff, kv = 24, 40, 8
	vocab := int(tok.Vocab()+63) / 64 * 64
	put("config.json", fmt.Appendf(nil, `{"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_act": "silu", "hidden_size": %d, "intermediate_size": %d,
"num_attention_heads": 6, "num_key_value_heads": 2, "num_hidden_layers": 2, "max_position_embeddings": 512, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
"tie_word_embeddings": true, "vocab_size": %d, "torch_dtype": "bfloat16", "eos_token_id": %d}`, d, ff, vocab, tok.ID("<|im_end|>")))
	type tensor struct {
		name  string
		shape []int
	}
	list := []tensor{{"model.embed_tokens.weight", []int{vocab, d}}, {"model.norm.weight", []int{d}}}
	for i := range 2 {
		at := fmt.Sprintf("model.layers.%d.", i)
		for name, shape := range map[string][]int{"input_layernorm.weight": {d}, "post_attention_layernorm.weight": {d},
			"self_attn.q_proj.weight": {d, d}, "self_attn.q_proj.bias": {d}, "self_attn.k_proj.weight": {kv, d}, "self_attn.k_proj.bias": {kv},
			"self_attn.v_proj.weight": {kv, d}, "self_attn.v_proj.bias": {kv}, "self_attn.o_proj.weight": {d, d},
			"mlp.gate_proj.weight": {ff, d}, "mlp.up_proj.weight": {ff, d}, "mlp.down_proj.weight": {d, ff}} {
			list = append(list, tensor{at + name, shape})
		}
	}
	slices.SortFunc(list, func(a, b tensor) int { return strings.Compare(a.name, b.name) }) // a map has no order
	header := map[string]any{}
	var data []byte
	rng := rand.New(rand.NewPCG(1, 2))
	for _, x := range list {
		n := 1
		for _, s := range x.shape {
			n *= s
		}
		from := len(data)
		for range n {
			v := float32(0.05 * rng.NormFloat64())
			if len(x.shape) == 1 && strings.Contains(x.name, "norm") {
				v = 1
			}
			data = binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(v)>>16))
		}
		header[x.name] = map[string]any{"dtype": "BF16", "shape": x.shape, "data_offsets": []int{from, len(data)}}
	}
	head, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	put("model.safetensors", append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...), data...))
}

var block = regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```")

// words splits a command as a shell does, as far as the pages need it.
func words(line string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`"([^"]*)"|(\S+)`).FindAllStringSubmatch(line, -1) {
		out = append(out, m[1]+m[2])
	}
	return out
}

// The commands of the tutorial run as they are written.
func TestFinetuneTutorial(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build programs with")
	}
	page, err := os.ReadFile("../../docs/tutorial/finetune.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tinyChatModel(t, filepath.Join(dir, "Qwen2.5-0.5B-Instruct"))
	t.Chdir(dir)
	said := map[string]string{}
	ran := 0
	for _, b := range block.FindAllStringSubmatch(string(page), -1) {
		switch b[1] {
		case "jsonl":
			if err := os.WriteFile("chats.jsonl", []byte(b[2]), 0o666); err != nil {
				t.Fatal(err)
			}
		case "sh":
			for line := range strings.Lines(b[2]) {
				args := words(line)
				if len(args) < 2 || args[0] != "mtc" {
					t.Fatalf("not a command: %s", line)
				}
				out, errw := succeed(t, args[1:]...)
				said[strings.Join(args[1:3], " ")] = out + errw
				ran++
			}
		}
	}
	if ran != 5 {
		t.Fatalf("%d commands ran", ran)
	}
	for what, want := range map[string][]string{
		"data show":             {"document 2:", "*", `"<|im_end|>"`},
		"run chat.mt":           {"8 documents", "loss: assistant", "documents apart", "weights from", "packed into", "eval 10/10", "step 10/10", "says 10/10", "held out (0.3 of all)"},
		"export runs/chat/best": {"chat-tuned"},
	} {
		for _, w := range want {
			if !strings.Contains(said[what], w) {
				t.Errorf("`mtc %s` does not say %q:\n%s", what, w, said[what])
			}
		}
	}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		a, err1 := os.ReadFile(filepath.Join("Qwen2.5-0.5B-Instruct", name))
		b, err2 := os.ReadFile(filepath.Join("chat-tuned", name))
		if err1 != nil || err2 != nil || string(a) != string(b) {
			t.Errorf("%s did not come through: %v %v", name, err1, err2)
		}
	}
	// Data of another tokenizer is refused.
	succeed(t, "data", "pack", "chats.jsonl", "-o", "bytes.packed", "--tokenizer", "gpt2", "--template", "chatml")
	code, _, errw := call("run", "chat.mt", "--from", "Qwen2.5-0.5B-Instruct", "--data", "bytes.packed", "--out", "runs/x")
	if code != exitInput || !strings.Contains(errw, "MT0606") && !strings.Contains(errw, "MT0674") {
		t.Errorf("exit %d\n%s", code, errw)
	}
}

// Fine-tuning by epochs gives the losses and norms that PyTorch gives, step by step, however the
// documents lie in rows and the rows in micro-batches: here a batch has more rows than there are
// documents, so every step is the part of a window that an epoch ends with.
func TestFinetuneEqualsPyTorch(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build programs with")
	}
	from, err := filepath.Abs("../../runtime/hf/testdata/llama2")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(from), "finetune.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Docs, Learn [][]int32
		Loss, Norm  []float64
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	w, err := packed.Create("data", packed.Manifest{Apart: true, Loss: "assistant", Tokenizer: packed.Tokenizer{Name: "ids", Hash: "ids", Vocab: 48}}, 100)
	if err != nil {
		t.Fatal(err)
	}
	for i, ids := range want.Docs {
		learn := make([]bool, len(ids))
		for j, l := range want.Learn[i] {
			learn[j] = l != 0
		}
		if err := w.Add(ids, learn); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(packed.Source{}); err != nil {
		t.Fatal(err)
	}
	succeed(t, "import", from, "-o", "m.mt")
	for i, flags := range [][]string{
		{"--set", "train.batch=8 rows"}, {"--set", "train.batch=8 rows", "--micro-batch", "1"},
		{"--set", "train.batch=6 rows", "--set", "train.documents=packed", "--micro-batch", "2", "--placement", "stream"},
	} {
		out := fmt.Sprintf("run%d", i)
		succeed(t, append([]string{"run", "m.mt", "--from", from, "--data", "data", "--epochs", "3", "--out", out, "--set", "train.seq=16",
			"--set", "train.eval=none", "--set", "train.lr=constant(peak = 1e-3)"}, flags...)...)
		lines, err := os.ReadFile(filepath.Join(out, "metrics.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		step := 0
		for line := range strings.Lines(string(lines)) {
			var m struct {
				Loss float64
				Norm float64 `json:"grad_norm"`
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil || m.Loss == 0 {
				continue
			}
			if step < len(want.Loss) && (math.Abs(m.Loss-want.Loss[step]) > 2e-6*want.Loss[step] || math.Abs(m.Norm-want.Norm[step]) > 1e-5*want.Norm[step]) {
				t.Errorf("%v, step %d: loss %.9g and norm %.9g, PyTorch has %.9g and %.9g", flags, step+1, m.Loss, m.Norm, want.Loss[step], want.Norm[step])
			}
			step++
		}
		if step != len(want.Loss) {
			t.Errorf("%v: %d steps, wanted %d", flags, step, len(want.Loss))
		}
	}
}

// A run on conversations goes on with the tokens that it began with, bit for bit as if nobody had
// stopped it, also when the files are gone; other files are taken where they are given.
func TestFinetuneGoesOn(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build programs with")
	}
	dir := t.TempDir()
	tinyChatModel(t, filepath.Join(dir, "model"))
	t.Chdir(dir)
	chats := func(word string, n int) {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `{"messages":[{"role":"user","content":"%s %d"},{"role":"assistant","content":"%s"}]}`+"\n", word, i, strings.Repeat(word+" ", 1+i%5))
		}
		if err := os.WriteFile("chats.jsonl", []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	chats("slab", 30)
	succeed(t, "import", "model", "-o", "m.mt")
	run := func(args ...string) (code int, said string) {
		code, out, errw := call(append([]string{"run", "m.mt", "--set", "train.seq=64", "--set", "train.batch=4 rows"}, args...)...)
		return code, out + errw
	}
	begin := []string{"--from", "model", "--data", "chats.jsonl", "--loss", "all", "--epochs", "2", "--set", "train.lr=constant(peak = 1e-3)"}
	code, said := run(append(begin, "--out", "whole", "--ask", "slab 3")...)
	if code != 0 || !strings.Contains(said, "loss: all") {
		t.Fatal(said)
	}
	// What it is asked at its end it answers as its checkpoint does, and trains on as if nobody had.
	answer := regexp.MustCompile(`(?m)^says 16/16  "slab 3": (".*")$`).FindStringSubmatch(said)
	if answer == nil {
		t.Fatalf("no answer:\n%s", said)
	}
	if out, _ := succeed(t, "generate", "whole", "--chat", "slab 3", "--temperature", "0", "--tokens", "64", "--stop-at-seq"); strconv.Quote(strings.TrimSuffix(out, "\n")) != answer[1] {
		t.Errorf("in the run it says %s, behind it %q", answer[1], out)
	}
	if code, said := run(append(begin, "--out", "parts", "--epochs", "1")...); code != 0 {
		t.Fatal(said)
	}
	if err := os.Remove("chats.jsonl"); err != nil {
		t.Fatal(err)
	}
	code, said = run("--resume", "--out", "parts", "--epochs", "2")
	if code != 0 || !strings.Contains(said, "goes on with parts/data") {
		t.Fatalf("exit %d\n%s", code, said)
	}
	weights := func(run string) []byte {
		t.Helper()
		c, err := checkpoint.Latest(run)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(c.Path, checkpoint.WeightsFile))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if !bytes.Equal(weights("whole"), weights("parts")) {
		t.Error("a run that was stopped has other weights than one that was not")
	}
	chats("lane", 20)
	code, said = run("--resume", "--out", "parts", "--epochs", "4", "--data", "chats.jsonl")
	if code != 0 || !strings.Contains(said, "packed     parts/data: 20 documents") || !strings.Contains(said, "loss: all") || !strings.Contains(said, "data: ") {
		t.Errorf("exit %d\n%s", code, said)
	}
	// Where nothing is packed, nothing says how.
	code, said = run("--from", "model", "--data", "parts/data", "--epochs", "1", "--loss", "all", "--out", "x")
	if code != exitUsage || !strings.Contains(said, "`--loss` says how text becomes tokens") {
		t.Errorf("exit %d\n%s", code, said)
	}
}
