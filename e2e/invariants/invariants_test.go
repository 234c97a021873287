package invariants

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/runtime/checkpoint/safetensors"
	"github.com/megatrain/mtc/runtime/plan"
)

// forEachFamily runs f for every family, with training data.
func forEachFamily(t *testing.T, f func(t *testing.T, family string, args []string)) {
	t.Parallel()
	data := corpus(t, 1500)
	for _, family := range families {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			f(t, family, []string{"--data", data, "--holdout", "0.4"})
		})
	}
}

func out(t *testing.T) string { return filepath.Join(t.TempDir(), "run") }

// TestStreamedEqualsResident: bit for bit, with any number of slots, with clipping and without.
func TestStreamedEqualsResident(t *testing.T) {
	forEachFamily(t, func(t *testing.T, family string, args []string) {
		for _, clip := range []string{"1.0", "none"} {
			// One group in both: the gradient of a tied tensor is added up in another order with more.
			o := compiler.Options{MicroBatch: 4, Groups: 1, Set: []string{"train.clip=" + clip}}
			resident := train(t, program(t, family, o), out(t), args...)
			o.Placement = "stream"
			counts := [][2]int64{{2, 2}, {1, 1}, {3, 2}}
			if clip == "none" {
				counts = counts[:1]
			}
			for _, slots := range counts {
				o.Slots, o.GradSlots = slots[0], slots[1]
				streamed := train(t, program(t, family, o), out(t), args...)
				same(t, fmt.Sprintf("clip %s, %d weight slots, %d gradient slots", clip, slots[0], slots[1]), streamed, resident)
			}
		}
	})
}

// TestHomesChangeNothing: where slabs, their weights and their gradients are, bit for bit; with
// groups of micro-batches too, which add up on the device in other places than on the host.
func TestHomesChangeNothing(t *testing.T) {
	forEachFamily(t, func(t *testing.T, family string, args []string) {
		if family != "gpt2" && family != "llama" {
			return // one with a tied tensor, and one without
		}
		for _, clip := range []string{"1.0", "none"} {
			o := compiler.Options{MicroBatch: 2, Groups: 1, Placement: "stream", Set: []string{"train.clip=" + clip}}
			bare := train(t, program(t, family, o), out(t), args...)
			slabs := planOf(t, family, o).Slabs
			for _, c := range []compiler.Options{
				{DeviceWeights: 1}, {GradHome: "device", HostSlots: 1}, {GradHome: "2", Resident: slabs[len(slabs)-1].Name + ", " + slabs[1].Name, SaveInputs: "1"},
			} {
				c.MicroBatch, c.Groups, c.Placement, c.Set = o.MicroBatch, o.Groups, o.Placement, o.Set
				same(t, fmt.Sprintf("%+v", c), train(t, program(t, family, c), out(t), args...), bare)
			}
			o.Groups, o.Placement = 2, "resident"
			resident := train(t, program(t, family, o), out(t), args...)
			o.Placement, o.GradHome = "stream", "device"
			same(t, "groups on the device, clip "+clip, train(t, program(t, family, o), out(t), args...), resident)
			o.GradHome, o.Resident = "host", "2"
			near(t, "groups on host and device, clip "+clip, train(t, program(t, family, o), out(t), args...), resident)
		}
	})
}

// TestRoundedGradients: gradients that cross the link in bf16 train like those in f32 but for the
// rounding, to the same bits wherever they wait and whether a norm that is not reached is known
// first.
func TestRoundedGradients(t *testing.T) {
	forEachFamily(t, func(t *testing.T, family string, args []string) {
		if family != "gpt2" && family != "llama" {
			return // one with a tied tensor, and one without
		}
		o := compiler.Options{MicroBatch: 4, Placement: "stream", Set: []string{"train.clip=1.0"}}
		exact := train(t, program(t, family, o), out(t), args...)
		o.GradPrecision = "bf16"
		half := train(t, program(t, family, o), out(t), args...)
		var e, h struct {
			Loss float64 `json:"loss"`
			Norm float64 `json:"grad_norm"`
		}
		for i := range 3 {
			if json.Unmarshal([]byte(exact.lines[i]), &e) != nil || json.Unmarshal([]byte(half.lines[i]), &h) != nil {
				t.Fatal(half.lines[i])
			}
			if d := math.Abs(h.Norm/e.Norm - 1); d > 1e-2 || d == 0 {
				t.Errorf("step %d: the norm is %v, exact %v", i+1, h.Norm, e.Norm)
			}
			if d := math.Abs(h.Loss - e.Loss); d > 2e-2 {
				t.Errorf("step %d: the loss is %v, exact %v", i+1, h.Loss, e.Loss)
			}
		}
		for _, c := range []compiler.Options{{GradHome: "device"}, {GradHome: "2", HostSlots: 1, GradSlots: 1}} {
			c.MicroBatch, c.Placement, c.GradPrecision, c.Set = o.MicroBatch, o.Placement, o.GradPrecision, o.Set
			same(t, "rounded, at home on the device", train(t, program(t, family, c), out(t), args...), half)
		}
		free := train(t, program(t, family, o), out(t), append(args, "--set", "train.clip=1e30")...)
		o.Set = []string{"train.clip=none"}
		same(t, "rounded, without clipping", train(t, program(t, family, o), out(t), args...), free)
	})
}

// TestInputsMadeAgainChangeNothing: whether the input of every layer is kept, of every second or
// of every third, bit for bit.
func TestInputsMadeAgainChangeNothing(t *testing.T) {
	forEachFamily(t, func(t *testing.T, family string, args []string) {
		if family != "gpt2" && family != "llama" {
			return // programs take their time to build
		}
		o := compiler.Options{MicroBatch: 4, Groups: 1, Recompute: "all", Set: []string{"train.clip=1.0"}}
		every := train(t, program(t, family, o), out(t), args...)
		for _, c := range []compiler.Options{{InputEvery: 2}, {InputEvery: 2, Placement: "stream"}, {InputEvery: 3, Placement: "stream", SaveInputs: "all", GradSlots: 3}} {
			c.MicroBatch, c.Groups, c.Recompute, c.Set = o.MicroBatch, o.Groups, o.Recompute, o.Set
			p := planOf(t, family, c)
			again := 0
			for i := range p.Tasks {
				if p.Tasks[i].Func == plan.Again {
					again++
				}
			}
			if again == 0 {
				t.Errorf("%+v: nothing is made again", c)
			}
			same(t, fmt.Sprintf("every %d", c.InputEvery), train(t, program(t, family, c), out(t), args...), every)
		}
	})
}

// TestSavedInputsChangeNothing: whether inputs of layers stay on the device or wait on the host,
// bit for bit, with recompute and without, in one group of micro-batches and in several.
func TestSavedInputsChangeNothing(t *testing.T) {
	forEachFamily(t, func(t *testing.T, family string, args []string) {
		for _, o := range []compiler.Options{
			{MicroBatch: 2, Placement: "stream", Recompute: "all", Set: []string{"train.clip=1.0"}},
			{MicroBatch: 2, Groups: 2, Placement: "stream", Set: []string{"train.clip=none"}},
		} {
			if o.Groups > 1 && stepwise(family) {
				continue
			}
			kept := train(t, program(t, family, o), out(t), args...)
			for _, n := range []string{"all", "1"} {
				o.SaveInputs = n
				p := planOf(t, family, o)
				if want := int64(len(p.Units) - 2); p.SavedInputs != 1 && p.SavedInputs != want && !(routed(family) && p.SavedInputs > want) {
					t.Errorf("%d inputs are saved, of %s", p.SavedInputs, n)
				}
				same(t, fmt.Sprintf("%d groups, %s saved", o.Groups, n), train(t, program(t, family, o), out(t), args...), kept)
			}
		}
	})
}

// TestSavedValuesChangeNothing: whether a layer makes again what backward reads, keeps it, or has it wait on
// the host, layer by layer, bit for bit.
func TestSavedValuesChangeNothing(t *testing.T) {
	forEachFamily(t, func(t *testing.T, family string, args []string) {
		o := compiler.Options{MicroBatch: 2, Placement: "stream", Set: []string{"L=4", "train.clip=1.0"}}
		kept := train(t, program(t, family, o), out(t), args...)
		for _, c := range []compiler.Options{
			{SaveValues: "all", SaveInputs: "all"}, {Recompute: "1", SaveValues: "1"}, {Recompute: "layer[1]", SaveValues: "all", Placement: "resident", Groups: 1},
		} {
			c.MicroBatch, c.Set = o.MicroBatch, o.Set
			if c.Placement == "" {
				c.Placement = o.Placement
			}
			if p := planOf(t, family, c); p.SavedLayers == 0 {
				t.Errorf("%+v: nothing is saved", c)
			}
			same(t, fmt.Sprintf("recompute %s, %s saved", c.Recompute, c.SaveValues), train(t, program(t, family, c), out(t), args...), kept)
		}
	})
}

// TestRecomputeChangesNothing: bit for bit, in both placements.
func TestRecomputeChangesNothing(t *testing.T) {
	forEachFamily(t, func(t *testing.T, family string, args []string) {
		kept := train(t, program(t, family, compiler.Options{MicroBatch: 4, Groups: 1, Set: []string{"train.clip=1.0"}}), out(t), args...)
		for _, placement := range []string{"resident", "stream"} {
			again := train(t, program(t, family, compiler.Options{MicroBatch: 4, Groups: 1, Placement: placement, Recompute: "all"}), out(t), args...)
			same(t, placement, again, kept)
		}
	})
}

// TestUnreachedClipChangesNothing: a threshold that no gradient reaches is the same as none,
// though the schedule is another: updates wait for the norm under the next step's forward.
func TestUnreachedClipChangesNothing(t *testing.T) {
	forEachFamily(t, func(t *testing.T, family string, args []string) {
		for _, placement := range []string{"resident", "stream"} {
			o := compiler.Options{MicroBatch: 4, Set: []string{"train.clip=none"}}
			if placement == "stream" {
				o.Placement, o.Slots, o.GradSlots = placement, 2, 2
			}
			off := train(t, program(t, family, o), out(t), args...)
			o.Set = []string{"train.clip=1.0"}
			on := train(t, program(t, family, o), out(t), append(args, "--set", "train.clip=1e30")...)
			same(t, placement, on, off)
		}
	})
}

// TestMicroBatchesAgree: any number of micro-batches and groups of them trains like one, but
// for the order of sums.
func TestMicroBatchesAgree(t *testing.T) {
	forEachFamily(t, func(t *testing.T, family string, args []string) {
		whole := train(t, program(t, family, compiler.Options{MicroBatch: 8}), out(t), args...)
		for _, o := range []compiler.Options{
			{MicroBatch: 4, Groups: 1, Set: []string{"train.clip=1.0"}}, {MicroBatch: 1, Groups: 1},
			{MicroBatch: 2}, // a micro-batch a group: batch-major order, the default where all is resident
			{MicroBatch: 1, Groups: 4, Placement: "stream", Recompute: "all"},
		} {
			if stepwise(family) && o.Groups > 1 || family == "choice" {
				continue // what an expert chooses turns with the order of sums
			}
			near(t, fmt.Sprintf("%d rows, %d groups %s", o.MicroBatch, o.Groups, o.Placement), train(t, program(t, family, o), out(t), args...), whole)
		}
	})
}

// near compares the losses and gradient norms of every step: 1e-6 of their size for the first
// step, and, as Adam turns differences of rounding into steps of its own size where a gradient
// is close to zero, 1e-4 for later ones.
func near(t *testing.T, what string, got, want *outcome) {
	t.Helper()
	if len(got.lines) != len(want.lines) || len(want.lines) < 12 {
		t.Fatalf("%s: %d lines of metrics against %d", what, len(got.lines), len(want.lines))
	}
	for i := range want.lines {
		var g, w map[string]float64
		if json.Unmarshal([]byte(got.lines[i]), &g) != nil || json.Unmarshal([]byte(want.lines[i]), &w) != nil {
			t.Fatalf("%s: line %s", what, got.lines[i])
		}
		tolerance := 1e-4
		if w["step"] == 1 {
			tolerance = 1e-6
		}
		for _, key := range []string{"loss", "grad_norm", "eval_loss"} {
			if d := math.Abs(g[key] - w[key]); !(d <= tolerance*math.Abs(w[key])) {
				t.Errorf("%s, step %v: %s is %v, want %v", what, w["step"], key, g[key], w[key])
			}
		}
	}
}

// TestThreadsChangeNothing: results do not depend on how many processors there are.
func TestThreadsChangeNothing(t *testing.T) {
	forEachFamily(t, func(t *testing.T, family string, args []string) {
		binary := program(t, family, compiler.Options{MicroBatch: 4, Placement: "stream", Slots: 2, GradSlots: 2, Set: []string{"train.clip=1.0"}})
		one := train(t, binary, out(t), append(args, "--threads", "1")...)
		for _, n := range []string{"2", "5"} {
			same(t, n+" threads", train(t, binary, out(t), append(args, "--threads", n)...), one)
		}
	})
}

// TestResumedEqualsUninterrupted: bit for bit, from checkpoints in the middle of an epoch, with
// evaluations and saves that fall elsewhere in the two runs.
func TestResumedEqualsUninterrupted(t *testing.T) {
	forEachFamily(t, func(t *testing.T, family string, args []string) {
		for _, o := range []compiler.Options{
			{MicroBatch: 4, Set: []string{"train.clip=1.0"}},
			{MicroBatch: 4, Placement: "stream", Slots: 2, GradSlots: 2, Set: []string{"train.clip=none"}},
		} {
			binary := program(t, family, o)
			whole := train(t, binary, out(t), args...)
			dir := out(t)
			// The first part ends as an interrupted one does: its schedule is that of all 12 steps.
			train(t, binary, dir, append(args, "--save-every", "7")...)
			keepOnly(t, dir, 7)
			resumed := train(t, binary, dir, "--resume", "--save-every", "4")
			same(t, o.Placement, resumed, whole)
		}
	})
}

// TestPrefillEqualsDecode: the logits after every position are the same bits whether the
// prompt went through in one piece, in chunks that do not divide it, or token by token.
func TestPrefillEqualsDecode(t *testing.T) {
	forEachFamily(t, func(t *testing.T, family string, args []string) {
		base := program(t, family, compiler.Options{MicroBatch: 4, Set: []string{"train.clip=1.0"}})
		weights := train(t, base, out(t), args...)
		fixture := asFixture(t, weights)
		var want []float32
		for _, o := range []compiler.Options{{Prefill: 1}, {Prefill: 16}, {Prefill: 3, Placement: "stream"}} {
			o.MicroBatch = 4
			dump := filepath.Join(t.TempDir(), "dump")
			run(t, program(t, family, o), "debug-step", "--fixture", fixture, "--dump", dump)
			f, err := safetensors.Open(dump)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			got, err := f.F32("logits")
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = got
			}
			if len(got) != len(want) || len(got) < 8*16*256 {
				t.Fatalf("%d logits against %d", len(got), len(want))
			}
			for i := range got {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
					t.Fatalf("prefill in chunks of %d %s: logit %d of position %d is %v, token by token %v",
						o.Prefill, o.Placement, i%256, i/256%16, got[i], want[i])
				}
			}
		}
	})
}

// asFixture writes a run's weights and some tokens in the form that debug-step reads.
func asFixture(t *testing.T, o *outcome) string {
	t.Helper()
	c := checkpointOf(t, o.dir)
	f, err := safetensors.Open(filepath.Join(c, "weights.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var entries []safetensors.Entry
	for _, x := range f.Tensors {
		entries = append(entries, safetensors.Entry{Name: "init." + x.Name, DType: x.DType, Shape: x.Shape, Data: o.tensors[x.Name]})
	}
	var tokens []byte
	for i := range 8 * 17 {
		tokens = binary.LittleEndian.AppendUint32(tokens, uint32(i*i*7+i)%256)
	}
	entries = append(entries, safetensors.Entry{Name: "tokens", DType: "I32", Shape: []int64{1, 8, 17}, Data: tokens})
	var b bytes.Buffer
	if err := safetensors.Write(&b, nil, entries); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fixture.safetensors")
	writeFile(t, path, b.Bytes())
	return path
}
