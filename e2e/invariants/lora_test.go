package invariants

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// loraArgs are the base of the family with adapters, and data for it.
func loraArgs(t *testing.T) (base string, args []string) {
	t.Helper()
	base, err := filepath.Abs(filepath.Join("..", "..", "runtime", "hf", "testdata", "llama3"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for i := range 3 {
		var ids bytes.Buffer
		for k := range 700 {
			_ = binary.Write(&ids, binary.LittleEndian, uint16((k*k+i*k)%48))
		}
		writeFile(t, filepath.Join(dir, string(rune('a'+i))+".bin"), ids.Bytes())
	}
	return base, []string{"--data", filepath.Join(dir, "[ab].bin"), "--eval-data", filepath.Join(dir, "c.bin")}
}

// TestAdaptersDoNotDependOnPlaces: adapters train to the same bits wherever they and the frozen
// weights are, with recompute or without; micro-batches and groups change no more than the order
// of sums.
func TestAdaptersDoNotDependOnPlaces(t *testing.T) {
	t.Parallel()
	base, args := loraArgs(t)
	fresh := append([]string{"--from", base}, args...)
	for _, clip := range []string{"1.0", "none"} {
		o := compiler.Options{MicroBatch: 4, Groups: 1, Set: []string{"train.clip=" + clip}}
		want := train(t, program(t, "lora", o), out(t), fresh...)
		if n := len(want.tensors); n != 30 { // A and B, weights and two moments, of five linears
			t.Fatalf("%d tensors are kept", n)
		}
		places := []compiler.Options{
			{Placement: "stream"},
			{Placement: "stream", Slots: 1, GradSlots: 1, Recompute: "all", SaveInputs: "all"},
			{Placement: "stream", Resident: "layer[0],layer[1].lora", DeviceWeights: 1, GradHome: "device", HostSlots: 1},
			{Recompute: "all", InputEvery: 2, Placement: "stream"},
		}
		if clip == "none" {
			places = places[:3]
		}
		for _, c := range places {
			c.MicroBatch, c.Groups, c.Set = o.MicroBatch, o.Groups, o.Set
			same(t, c.Placement+" "+c.Resident+c.Recompute, train(t, program(t, "lora", c), out(t), fresh...), want)
		}
		for _, c := range []compiler.Options{{MicroBatch: 8}, {MicroBatch: 1, Groups: 4, Placement: "stream"}, {MicroBatch: 2}} {
			c.Set = o.Set
			near(t, "micro-batches", train(t, program(t, "lora", c), out(t), fresh...), want)
		}
	}
}

// TestAdaptersResume: a run that is gone on with from its sixth step has the bits of one that was
// never interrupted, in another placement too.
func TestAdaptersResume(t *testing.T) {
	t.Parallel()
	base, args := loraArgs(t)
	o := compiler.Options{MicroBatch: 4, Groups: 1, Set: []string{"train.clip=1.0"}}
	whole := out(t)
	want := train(t, program(t, "lora", o), whole, append([]string{"--from", base, "--save-every", "3"}, args...)...)
	keepOnly(t, whole, 6)
	from := checkpointOf(t, whole)
	stream := compiler.Options{MicroBatch: 4, Placement: "stream", Slots: 1, GradSlots: 1, Set: o.Set}
	for _, binary := range []string{program(t, "lora", o), program(t, "lora", stream)} {
		got := train(t, binary, out(t), append([]string{"--resume=" + from}, args...)...)
		for name, w := range want.tensors {
			if !bytes.Equal(got.tensors[name], w) {
				t.Errorf("%s differs", name)
			}
		}
	}
}

// TestAdaptersKnowTheirBase: going on and generating take the frozen weights from where they were
// or are now, and no others.
func TestAdaptersKnowTheirBase(t *testing.T) {
	t.Parallel()
	from, args := loraArgs(t)
	base := filepath.Join(t.TempDir(), "base")
	if err := os.CopyFS(base, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	binary := program(t, "lora", compiler.Options{MicroBatch: 4, Groups: 1, Set: []string{"train.clip=1.0"}})
	dir := out(t)
	code, text := fails(t, binary, append([]string{"train", "--out", dir}, args...)...)
	if code != 2 || !says(text, "nothing says where these come from") {
		t.Errorf("without --from: exit %d\n%s", code, text)
	}
	run(t, binary, append([]string{"train", "--out", dir, "--from", base, "--steps", "3"}, args...)...)
	generate := []string{"generate", dir, "--prompt", "", "--tokens", "5", "--temperature", "0"}
	said := run(t, binary, generate...)

	moved := base + "-moved"
	if err := os.Rename(base, moved); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][]string{generate, append([]string{"train", "--resume", "--out", dir, "--steps", "6"}, args...), {"export", dir, "--hf", filepath.Join(t.TempDir(), "hf")}} {
		if code, text := fails(t, binary, c...); code != 1 || !says(text, "MT0665") || !says(text, "--from DIR") {
			t.Errorf("%s without its base: exit %d\n%s", c[0], code, text)
		}
	}
	if again := run(t, binary, append(generate, "--from", moved)...); again != said {
		t.Errorf("from another place it says %q, not %q", again, said)
	}
	shard := filepath.Join(moved, "model-00002-of-00003.safetensors")
	whole, err := os.ReadFile(shard)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(whole)
	changed[len(changed)-40] ^= 1 // one bit of one weight
	writeFile(t, shard, changed)
	for _, c := range [][]string{generate, append([]string{"train", "--resume", "--out", dir, "--steps", "6"}, args...), {"export", dir, "--hf", filepath.Join(t.TempDir(), "hf")}} {
		if code, text := fails(t, binary, append(c, "--from", moved)...); code != 1 || !says(text, "were trained on other weights") {
			t.Errorf("%s on a base that has changed: exit %d\n%s", c[0], code, text)
		}
	}
	writeFile(t, shard, whole)
	run(t, binary, append([]string{"train", "--resume", "--out", dir, "--steps", "6", "--from", moved}, args...)...)

	// What trains everything takes no adapters, and the reverse.
	full := program(t, "llama", llama)
	if code, text := fails(t, full, append([]string{"train", "--resume=" + checkpointOf(t, dir), "--out", out(t), "--set", "train.width=2"}, args...)...); code != 1 || !says(text, "MT0622") || !says(text, "adapters alone") {
		t.Errorf("a program that trains everything: exit %d\n%s", code, text)
	}
}

// TestMergedIsUnmerged: the logits of the program with its adapters are those of the merged export.
func TestMergedIsUnmerged(t *testing.T) {
	t.Parallel()
	base, args := loraArgs(t)
	o := compiler.Options{MicroBatch: 4, Groups: 1, Set: []string{"train.clip=1.0"}}
	binary := program(t, "lora", o)
	dir, merged := out(t), filepath.Join(t.TempDir(), "merged")
	trained := train(t, binary, dir, append([]string{"--from", base, "--set", "train.lr=0.03"}, args...)...)
	run(t, binary, "export", dir, "--hf", merged, "--dtype", "f32")

	o.Set = append(o.Set, "train.lora=none")
	whole := program(t, "lora", o)
	tokens := make([]byte, 4*8*17)
	for i := range 8 * 17 {
		binary32(tokens[4*i:], uint32(i*i%48))
	}
	entries := []safetensors.Entry{{Name: "tokens", DType: "I32", Shape: []int64{1, 8, 17}, Data: tokens}}
	for name, data := range trained.tensors {
		if strings.HasPrefix(name, "layer") {
			rank := int64(3)
			shape := []int64{rank, int64(len(data)) / 4 / rank}
			if strings.Contains(name, "lora_b") {
				shape[0], shape[1] = shape[1], shape[0]
			}
			entries = append(entries, safetensors.Entry{Name: "init." + name, DType: "F32", Shape: shape, Data: data})
		}
	}
	fixture := filepath.Join(t.TempDir(), "fixture")
	f, err := os.Create(fixture)
	if err != nil {
		t.Fatal(err)
	}
	if err := safetensors.Write(f, nil, entries); err != nil {
		t.Fatal(err)
	}
	f.Close()
	logits := func(binary, from string) []float32 {
		dump := filepath.Join(t.TempDir(), "dump")
		run(t, binary, "debug-step", "--from", from, "--fixture", fixture, "--dump", dump)
		d, err := safetensors.Open(dump)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		v, err := d.F32("logits")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	a, b, plain := logits(binary, base), logits(whole, merged), logits(whole, base)
	var diff, most, change float64
	for i := range a {
		diff = max(diff, float64(max(a[i]-b[i], b[i]-a[i])))
		most = max(most, float64(max(a[i], -a[i])))
		change = max(change, float64(max(a[i]-plain[i], plain[i]-a[i])))
	}
	if diff > 1e-5*most || change < 0.01*most {
		t.Errorf("merged logits differ by %g of %g; the adapters change them by %g", diff, most, change)
	}
}

func binary32(b []byte, v uint32) { binary.LittleEndian.PutUint32(b, v) }

// TestFrozenWeightsHaveNothingElse: neither gradient nor state, wherever they are; on a GPU two
// bytes a parameter on the host.
func TestFrozenWeightsHaveNothingElse(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"cpu", "cuda"} {
		for _, o := range []compiler.Options{{}, {Placement: "stream"}, {Placement: "stream", GradHome: "device", Resident: "layer[0]"}} {
			o.Target = target
			p := planOf(t, "lora", o)
			size := p.WeightSize()
			frozen := map[plan.BufID]bool{}
			var adapters, weights int64
			for i := range p.Slabs {
				s := &p.Slabs[i]
				if !s.Frozen {
					adapters += s.Elems
					continue
				}
				if s.Lo != plan.NoBuf || s.M != plan.NoBuf || s.V != plan.NoBuf || s.Grad != plan.NoBuf || i < p.Trained() {
					t.Errorf("%s has more than weights", s.Name)
				}
				frozen[s.Weight] = true
				weights += s.Elems
			}
			for i := range p.Tasks {
				task := &p.Tasks[i]
				for _, id := range task.Writes {
					if frozen[id] {
						t.Errorf("task %d writes frozen weights", i)
					}
				}
				if (task.Kind == plan.Update || task.Kind == plan.Norm || task.Kind == plan.Offload) && p.Slabs[task.Slab].Frozen {
					t.Errorf("task %d is a %s of a frozen slab", i, task.Kind)
				}
			}
			var host int64
			for _, b := range p.Buffers[1:] {
				if a := &p.Arenas[b.Arena]; a.Memory == device.HostMemory && a.Name != "host.io" {
					host += b.Bytes
				}
			}
			if limit := size*weights + 64*adapters; host > limit {
				t.Errorf("%s %s: %d bytes on the host for %d frozen weights", target, o.Placement, host, weights)
			}
		}
	}
}
