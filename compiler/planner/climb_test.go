package planner

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/lang/diag"
)

// TestClimbing: from what is chosen, options are changed by chance, whatever is faster and fits is taken, and the
// next change begins there. It must not get over 3 % faster than the choice. It runs with MTC_LONG=1 alone.
func TestClimbing(t *testing.T) {
	if os.Getenv("MTC_LONG") == "" {
		t.Skip("it takes minutes; MTC_LONG=1 runs it")
	}
	for k, tc := range []struct {
		model, machine string
		rows           int64 // of the batch; T is 1,024
		device, host   int64 // GiB, 0: the machine's
	}{
		{"llama3.2-1b", "rtx4090", 32, 12, 64},
		{"llama3.2-1b", "rtx3090", 64, 10, 40},
		{"gpt2", "rtx4090", 64, 3, 0},
		{"qwen2.5-7b", "h200", 32, 24, 0},
		{"qwen2.5-7b", "h200", 64, 40, 0},
		{"qwen2.5-7b", "rtx4090", 64, 0, 128},
		{"olmoe-7b", "rtx4090", 32, 0, 160},
		{"qwen2.5-14b", "h200", 32, 100, 256},
		{"qwen2.5-7b-lora", "rtx4090", 32, 0, 64},
		{"qwen2.5-32b", "gh200", 32, 0, 0},
		{"qwen2.5-72b", "h200", 16, 0, 1536},
		{"qwen3-moe", "a100-80g", 16, 40, 768},
		{"mixtral", "h100-sxm", 16, 0, 1024},
		{"et_moe", "l40s", 128, 6, 0},
	} {
		t.Run(fmt.Sprintf("%s %s %d %d", tc.model, tc.machine, tc.rows, tc.device), func(t *testing.T) {
			o := compiler.Options{
				Path: "../../models/" + tc.model + ".mt", Target: "cuda",
				Set: []string{"train.seq=1024", fmt.Sprintf("train.batch=%d rows", tc.rows)},
			}
			r := Request{Options: o, Machine: cost.Shipped(tc.machine), Device: tc.device << 30, Host: tc.host << 30}
			best, err := choose(t, r)
			if err != nil {
				t.Fatal(err)
			}
			climb(t, r, best, rand.New(rand.NewSource(int64(k))))
		})
	}
}

// climb changes options by chance for as many plans as two million tasks are.
func climb(t *testing.T, r Request, best *Choice, rng *rand.Rand) {
	s := start(context.Background(), r)
	first, err := compiler.Prepare(s.ctx, s.r.Options, &diag.List{})
	if err != nil {
		t.Fatal(err)
	}
	cur, seconds := *best, best.Timeline.Seconds
	n, fit := 0, 0
	for tasks := 0; tasks < 2_000_000; n++ {
		o := drawn(rng, s, first, &cur)
		if rng.Intn(2) == 0 { // one change alone, most of the time
			o = turned(rng, o, cur.Options, s.device)
		}
		tasks += 1000 // for lowering
		prep, err := first.Again(o)
		if err != nil {
			continue
		}
		p, err := prep.Plan(o, 0)
		if err != nil {
			continue
		}
		tasks += len(p.Tasks)
		if d, h := Need(p, s.m); d > s.device || h > s.host {
			continue
		}
		fit++
		line, err := cost.Simulate(p, cost.WorkOf(prep.Program()), s.m)
		if err != nil {
			t.Fatal(err)
		}
		if line.Seconds < seconds {
			o.DeviceMemory = 0
			cur.Options, seconds = o, line.Seconds
		}
	}
	text := fmt.Sprintf("%d of %d fit; %.4g s a step with %s, the choice takes %.4g s (%+.1f %%): %v",
		fit, n, seconds, pins(cur.Options), best.Timeline.Seconds, 100*(seconds/best.Timeline.Seconds-1), best.from)
	if t.Log(text); seconds < 0.97*best.Timeline.Seconds {
		t.Error("over 3 % faster")
	}
}

// turned takes one of the options that were drawn, and the others as they are now.
func turned(rng *rand.Rand, drawn, now compiler.Options, device int64) compiler.Options {
	o := now
	switch rng.Intn(9) {
	case 0:
		o.MicroBatch, o.Groups = drawn.MicroBatch, drawn.Groups
	case 1:
		o.Groups = drawn.Groups
	case 2:
		o.Recompute = drawn.Recompute
	case 3:
		o.Recompute, o.SaveValues = drawn.Recompute, drawn.SaveValues
	case 4:
		o.Resident = drawn.Resident
	case 5:
		o.GradHome = drawn.GradHome
	case 6:
		o.SaveInputs = drawn.SaveInputs
	case 7:
		o.Slots, o.GradSlots, o.HostSlots = drawn.Slots, drawn.GradSlots, drawn.HostSlots
	case 8:
		o.DeviceWeights = drawn.DeviceWeights
	}
	if o.Placement == "stream" && rng.Intn(2) == 0 {
		o.Resident, o.DeviceMemory = "auto", device
	}
	return o
}
