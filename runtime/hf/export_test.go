package hf

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// exported is a small run, with a checkpoint of weights that count up.
func exported(t *testing.T, family plan.Family) *Request {
	t.Helper()
	dir := t.TempDir()
	p := &plan.Plan{Model: "m", ModelHash: "h", Source: "m.mt", Seq: 8, Family: family, Foreign: []plan.Foreign{
		{Names: []string{"b"}, Params: []string{"b"}}, {Op: "transpose", Names: []string{"a"}, Params: []string{"a"}},
		{Names: []string{"c"}, Params: []string{"c"}},
	}}
	p.Slabs = []plan.Slab{{Params: []plan.Param{{Name: "a", Shape: []int64{6, 4}}, {Name: "b", Shape: []int64{8}}, {Name: "c", Shape: []int64{2, 8}}}}}
	file := checkpoint.File{Name: checkpoint.WeightsFile}
	for _, x := range p.Slabs[0].Params {
		n := int64(1)
		for _, d := range x.Shape {
			n *= d
		}
		file.Tensors = append(file.Tensors, safetensors.Entry{Name: x.Name, DType: "F32", Shape: x.Shape, Data: numbers(int(n), "F32")})
	}
	path, err := checkpoint.Save(dir, checkpoint.State{Hash: "h"}, []checkpoint.File{file}, 1)
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return &Request{Plan: p, Run: dir, Checkpoint: c}
}

var llama = plan.Family{Name: "llama", Values: []plan.Value{{Name: "D", Text: "4"}, {Name: "L", Text: "1"}, {Name: "H", Text: "2"}, {Name: "KV", Text: "1"},
	{Name: "F", Text: "8"}, {Name: "V", Text: "6"}, {Name: "hd", Text: "2"}, {Name: "theta", Text: "10000"}, {Name: "eps", Text: "1e-05"}, {Name: "scaling", Text: "none"},
	{Name: "qkv_bias", Text: "false"}, {Name: "qk_norm", Text: "false"}, {Name: "window", Text: "none"}, {Name: "tied", Text: "true"}}}

// Files begin anew above the size asked for; the index, read back by Open, names them all.
func TestExportCutsFilesAndWritesTheirIndex(t *testing.T) {
	r := exported(t, llama)
	r.DType, r.ShardBytes = "BF16", 60 // a takes 48 bytes, b 16, c 32
	out := filepath.Join(t.TempDir(), "out")
	res, err := Export(out, r)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if len(f.Shards) != 2 || f.Index == "" || res.Tensors != 3 || res.Arch != "LlamaForCausalLM" {
		t.Errorf("%d shards, index %q, %+v", len(f.Shards), f.Index, res)
	}
	if _, err := f.Match(r.Plan.Foreign, ShapesOf(r.Plan)); err != nil {
		t.Error(err)
	}
	a := f.tensor["a"]
	if a.DType != "BF16" || shapeText(a.Shape) != "[4, 6]" || f.tensor["b"].shard == a.shard {
		t.Errorf("%+v", a)
	}
	o, _, err := readObject(filepath.Join(out, indexFile))
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := wholeOf(o["metadata"].(object)["total_size"]); n != 2*(24+8+16) {
		t.Errorf("total_size is %d", n)
	}
	d, err := f.Describe()
	if err != nil || d.Context != 8 || f.Config["torch_dtype"] != "bfloat16" {
		t.Errorf("%v, %+v", err, d)
	}
}

func TestExportsThatAreRefused(t *testing.T) {
	r := exported(t, plan.Family{Why: "llama has `silu` where this model has `relu2`"})
	out := filepath.Join(t.TempDir(), "out")
	_, err := Export(out, r)
	wantFault(t, err, "MT0664", "relu2", "MistralForCausalLM", "weights.safetensors")
	r = exported(t, plan.Family{Name: "llama", Values: append(append([]plan.Value{}, llama.Values[:10]...),
		plan.Value{Name: "qkv_bias", Text: "true"}, plan.Value{Name: "qk_norm", Text: "true"})})
	_, err = Export(out, r)
	wantFault(t, err, "MT0664", "which has biases of q, k, v and o or none")
	r = exported(t, llama)
	_, err = Export(filepath.Join(r.Run, "hf"), r)
	wantFault(t, err, "MT0664", "files of its own")
	weights := filepath.Join(r.Checkpoint.Path, checkpoint.WeightsFile)
	text, err := os.ReadFile(weights)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)-1] ^= 1
	if err := os.WriteFile(weights, text, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = Export(out, r)
	wantFault(t, err, "MT0621", "weights.safetensors")
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(out), "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A run that is no longer the model that came gets a new configuration, and says so.
func TestExportOfAChangedModel(t *testing.T) {
	r := exported(t, llama)
	from := t.TempDir()
	put(t, from, configFile, `{"architectures": ["LlamaForCausalLM"], "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
		"intermediate_size": 8, "vocab_size": 6, "rms_norm_eps": 1e-5, "rope_theta": 500000, "tie_word_embeddings": true, "torch_dtype": "float16"}`)
	writeShard(t, from, singleFile, "a F16 4 6", "b F16 8", "c F32 2 8")
	f, err := Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := f.Match(r.Plan.Foreign, ShapesOf(r.Plan))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Keep(r.Run); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	res, err := Export(out, r)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "theta is 500000 there and 10000 here") {
		t.Errorf("notes: %v", res.Notes)
	}
	back, err := Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	if d, err := back.Describe(); err != nil || values(d.Values)["theta"] != "10000" {
		t.Errorf("%v, %+v", err, d)
	}
	if back.tensor["a"].DType != "F16" || back.tensor["c"].DType != "F32" {
		t.Error("dtypes are not those that came")
	}
	// Cut anew without a dtype, each keeps its own.
	r.ShardBytes = 40
	out = filepath.Join(t.TempDir(), "out")
	if _, err := Export(out, r); err != nil {
		t.Fatal(err)
	}
	cut, err := Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer cut.Close()
	if len(cut.Shards) != 3 || cut.tensor["a"].DType != "F16" || cut.tensor["c"].DType != "F32" {
		t.Errorf("%d shards", len(cut.Shards))
	}
}

type full struct{}

func (full) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "out", Err: syscall.ENOSPC}
}

// TestFullDiskIsNotTheCheckpoints: an error of writing names the export, one of reading what is read.
func TestFullDiskIsNotTheCheckpoints(t *testing.T) {
	r := exported(t, llama)
	weights, err := safetensors.Open(filepath.Join(r.Checkpoint.Path, checkpoint.WeightsFile))
	if err != nil {
		t.Fatal(err)
	}
	tmp := t.TempDir()
	x := &exporter{Request: r, weights: weights, res: &Result{Dir: "dir"}, tmp: tmp}
	write := func(to io.Writer) error {
		return x.tensor(to, &outTensor{entry: &r.Plan.Foreign[0], name: "b", dtype: "F32"})
	}
	if err := write(full{}); !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "MT0602") {
		t.Errorf("full disk: %v", err)
	}
	var f *fault.Error
	err = x.cannotWrite(&os.PathError{Op: "write", Path: filepath.Join(tmp, "model.safetensors"), Err: syscall.ENOSPC})
	if !errors.As(err, &f) || f.Code != "MT0623" || f.Path != filepath.Join("dir", "model.safetensors") || f.ExitCode() != 3 {
		t.Errorf("%v", err)
	}
	weights.Close()
	if err := write(io.Discard); !errors.As(err, &f) || f.Code != "MT0602" || f.Path != weights.Path {
		t.Errorf("unreadable: %v", err)
	}
	_, err = io.Copy(full{}, &source{strings.NewReader("text"), "in"})
	if !errors.Is(err, syscall.ENOSPC) || errors.As(err, &f) {
		t.Errorf("copy to a full disk: %v", err)
	}
}
