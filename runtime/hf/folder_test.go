package hf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/fault"
	"github.com/megatrain/mtc/runtime/plan"
)

// writeShard writes tensors of ones, named "name dtype shape...".
func writeShard(t *testing.T, dir, file string, tensors ...string) {
	t.Helper()
	var entries []safetensors.Entry
	for _, text := range tensors {
		f := strings.Fields(text)
		e := safetensors.Entry{Name: f[0], DType: f[1]}
		n := int64(1)
		for _, d := range f[2:] {
			var dim int64
			fmt.Sscan(d, &dim)
			e.Shape = append(e.Shape, dim)
			n *= dim
		}
		size := map[string]int64{"F32": 4, "BF16": 2, "F16": 2, "F64": 8, "I8": 1}[e.DType]
		e.Data = bytes.Repeat([]byte{0x3f}, int(n*size))
		entries = append(entries, e)
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, map[string]string{"format": "pt"}, entries); err != nil {
		t.Fatal(err)
	}
	put(t, dir, file, b.String())
}

func put(t *testing.T, dir, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// tiny is a folder with two shards and their index.
func tiny(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, "config.json", `{"architectures": ["LlamaForCausalLM"]}`)
	writeShard(t, dir, "model-00001-of-00002.safetensors", "model.a BF16 4 2", "model.v F32 4")
	writeShard(t, dir, "model-00002-of-00002.safetensors", "lm_head.weight F32 4 2")
	index(t, dir, "model.a", 1, "model.v", 1, "lm_head.weight", 2)
	return dir
}

func index(t *testing.T, dir string, pairs ...any) {
	t.Helper()
	var parts []string
	for i := 0; i < len(pairs); i += 2 {
		parts = append(parts, fmt.Sprintf("%q: \"model-%05d-of-00002.safetensors\"", pairs[i], pairs[i+1]))
	}
	put(t, dir, indexFile, `{"metadata": {"total_size": 1}, "weight_map": {`+strings.Join(parts, ", ")+`}}`)
}

func wantFault(t *testing.T, err error, code string, parts ...string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != code {
		t.Fatalf("got %v, wanted %s", err, code)
	}
	for _, p := range parts {
		if !strings.Contains(fault.Text(err), p) {
			t.Errorf("no %q in:\n%s", p, fault.Text(err))
		}
	}
}

func TestFoldersThatAreRefused(t *testing.T) {
	const first, second = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
	for _, c := range []struct {
		name, code string
		harm       func(dir string)
		want       []string
	}{
		{"a missing shard and a stale one", "MT0662", func(dir string) {
			os.Remove(filepath.Join(dir, second))
			put(t, dir, "model-00003-of-00003.safetensors", "")
		}, []string{second + " is missing", "model-00003-of-00003.safetensors is there, and"}},
		{"a tensor that is elsewhere", "MT0662", func(dir string) { index(t, dir, "model.a", 2, "model.v", 1, "lm_head.weight", 2) },
			[]string{"model.a is not in " + second, indexFile + " puts it"}},
		{"a tensor that is not listed", "MT0662", func(dir string) { index(t, dir, "model.a", 1, "lm_head.weight", 2) }, []string{first + " has model.v, which"}},
		{"a tensor that is nowhere", "MT0662", func(dir string) { index(t, dir, "model.a", 1, "model.v", 1, "model.w", 1, "lm_head.weight", 2) }, []string{"model.w is not in"}},
		{"a shard outside of the folder", "MT0662", func(dir string) {
			put(t, dir, indexFile, `{"weight_map": {"model.a": "../x.safetensors"}}`)
		}, []string{"../x.safetensors"}},
		{"an index of another kind", "MT0662", func(dir string) { put(t, dir, indexFile, `{"weight_map": []}`) }, []string{"no weight_map"}},
		{"an index with a name twice", "MT0660", func(dir string) {
			put(t, dir, indexFile, `{"weight_map": {"a": "x.safetensors", "a": "y.safetensors"}}`)
		}, []string{`"a" occurs twice`}},
		{"one tensor under two names", "MT0662", func(dir string) {
			writeShard(t, dir, second, "a F32 4 2")
			index(t, dir, "model.a", 1, "model.v", 1, "a", 2)
		}, []string{"the same tensor twice"}},
		{"both shards truncated", "MT0662", func(dir string) {
			for _, name := range []string{first, second} {
				if err := os.Truncate(filepath.Join(dir, name), 40); err != nil {
					t.Fatal(err)
				}
			}
		}, []string{first + ": byte 0: not a whole safetensors file", second + ": byte 0: not a whole safetensors file"}},
		{"a header of 2^63 bytes", "MT0662", func(dir string) {
			put(t, dir, first, string(binary.LittleEndian.AppendUint64(nil, 1<<63))+"{}")
		}, []string{"claims 9223372036854775808 bytes"}},
		{"an empty shard", "MT0662", func(dir string) { put(t, dir, first, "") }, []string{"has 0 bytes"}},
		{"shards without an index", "MT0662", func(dir string) { os.Remove(filepath.Join(dir, indexFile)) }, []string{"2 shards", indexFile}},
		{"pickles", "MT0662", func(dir string) {
			for _, name := range []string{first, second, indexFile} {
				os.Remove(filepath.Join(dir, name))
			}
			put(t, dir, "pytorch_model.bin", "")
		}, []string{"safe_serialization"}},
		{"no configuration", "MT0602", func(dir string) { os.Remove(filepath.Join(dir, configFile)) }, []string{"config.json"}},
		{"a configuration that is a folder", "MT0602", func(dir string) {
			os.Remove(filepath.Join(dir, configFile))
			os.Mkdir(filepath.Join(dir, configFile), 0o777)
		}, []string{"not a regular file"}},
		{"a configuration that is a pipe", "MT0602", func(dir string) { pipe(t, dir, configFile) }, []string{"not a regular file"}},
		{"a shard that is a pipe", "MT0662", func(dir string) { pipe(t, dir, second) }, []string{second + ": cannot be read: it is not a regular file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tiny(t)
			f, err := Open(dir)
			if err != nil {
				t.Fatalf("before: %v", err)
			}
			f.Close()
			c.harm(dir)
			_, err = Open(dir)
			wantFault(t, err, c.code, c.want...)
		})
	}
	_, err := Open(filepath.Join(tiny(t), configFile))
	wantFault(t, err, "MT0662", "a folder is wanted")
}

// pipe puts a pipe in the place of a file; nobody ever writes into it.
func pipe(t *testing.T, dir, name string) {
	t.Helper()
	os.Remove(filepath.Join(dir, name))
	if err := syscall.Mkfifo(filepath.Join(dir, name), 0o666); err != nil {
		t.Fatal(err)
	}
}

// The map is law: all that is missing, left over, or of another shape or kind is told at once.
func TestEveryMismatchIsToldAtOnce(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, configFile, "{}")
	writeShard(t, dir, singleFile,
		"h.0.q BF16 2 3", "h.1.q BF16 2 3", "h.0.qkv F32 2 7", "h.1.qkv F32 2 6", "j1 F32 1 3", "j2 F32 2 3",
		"other I8 5", "kind F64 2", "zero F32 0 3", "head F32 1", "h.0.attn.bias F32 1 1", "x.rotary_emb.inv_freq F32 2")
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	foreign := []plan.Foreign{
		{Names: []string{"h.0.q"}, Params: []string{"layer[0].q"}}, {Names: []string{"h.1.q"}, Params: []string{"layer[1].q"}},
		{Op: "split(transpose", Names: []string{"h.0.qkv"}, Params: []string{"layer[0].a", "layer[0].b"}},
		{Op: "split(transpose", Names: []string{"h.1.qkv"}, Params: []string{"layer[1].a", "layer[1].b"}},
		{Op: "join", Names: []string{"j1", "j2"}, Params: []string{"j"}},
		{Names: []string{"kind"}, Params: []string{"kind"}}, {Names: []string{"zero"}, Params: []string{"zero"}},
		{Names: []string{"missing"}, Params: []string{"m"}}, {Names: []string{"v"}, Also: []string{"head"}, Params: []string{"v"}},
	}
	shapes := Shapes{"layer[0].q": {3, 2}, "layer[1].q": {3, 2}, "layer[0].a": {4, 2}, "layer[0].b": {2, 2}, "layer[1].a": {4, 2}, "layer[1].b": {2, 2},
		"j": {4, 3}, "kind": {2}, "zero": {1, 3}, "m": {7}, "v": {1}}
	_, err = f.Match(foreign, shapes)
	wantFault(t, err, "MT0663",
		"h.0.q has the shape [2, 3], the model wants [3, 2] (layer[0].q); so for 2 layers, 0 to 1",
		"h.0.qkv has the shape [2, 7], the model wants [2, 6] (layer[0].a, layer[0].b)",
		"j1, j2 have 3 rows together, the model wants 4 (j)", "kind has the dtype F64", "zero has the shape [0, 3], the model wants [1, 3]",
		"missing is missing: m of shape [7]", "v is missing", "other of shape [5] is left over")
	if text := fault.Text(err); strings.Contains(text, "attn.bias") || strings.Contains(text, "inv_freq") || strings.Contains(text, "h.1.qkv") {
		t.Errorf("what is right is told too:\n%s", text)
	}
	_, err = f.Match(nil, shapes)
	wantFault(t, err, "MT0663", "weights hf")
}

// A tied head that is stored once more has to be equal, in whatever dtype.
func TestTwins(t *testing.T) {
	for _, c := range []struct {
		head string
		data []byte
		good bool
	}{
		{"F32", []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}, true}, {"F32", []byte{1, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}, false},
		{"BF16", []byte{0x80, 0x3f, 0, 0xc0}, true}, {"BF16", []byte{0x81, 0x3f, 0, 0xc0}, false},
	} {
		dir := t.TempDir()
		put(t, dir, configFile, "{}")
		var b bytes.Buffer
		err := safetensors.Write(&b, nil, []safetensors.Entry{
			{Name: "wte", DType: "F32", Shape: []int64{2, 1}, Data: []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}},
			{Name: "head", DType: c.head, Shape: []int64{2, 1}, Data: c.data}})
		if err != nil {
			t.Fatal(err)
		}
		put(t, dir, singleFile, b.String())
		f, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		m, err := f.Match([]plan.Foreign{{Names: []string{"wte"}, Also: []string{"head"}, Params: []string{"wte"}}}, Shapes{"wte": {2, 1}})
		if err != nil {
			t.Fatal(err)
		}
		if err = m.Twins(); c.good && err != nil || !c.good && err == nil {
			t.Errorf("%s %v: %v", c.head, c.data, err)
		} else if !c.good {
			wantFault(t, err, "MT0663", "head differs from wte", "tie_word_embeddings")
		}
		f.Close()
	}
}
