package planner

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/lang/diag"
)

// TestPinnedAlternatives: of the plans that somebody makes by hand, with every option pinned and the device
// filled by the compiler, none that fits is simulated to be over 3 % faster than what is chosen. A plain
// run takes the small model; MTC_LONG=1 takes all.
func TestPinnedAlternatives(t *testing.T) {
	for i, tc := range []struct {
		model, machine string
		rows           int64 // of the batch; T is 1,024, but for the small model
		device, host   int64 // MiB, 0: the machine's
	}{
		{"", "rtx4090", 64, 1250, 3000},
		{"", "rtx4090", 64, 2000, 1200},
		{"qwen2.5-7b", "h200", 64, 24 << 10, 0},
		{"qwen2.5-7b", "h200", 64, 40 << 10, 0},
		{"qwen2.5-7b", "h200", 16, 40 << 10, 0},
		{"qwen2.5-7b", "h200", 64, 0, 0},
		{"qwen2.5-7b", "rtx4090", 64, 0, 128 << 10},
		{"qwen2.5-14b", "h200", 64, 138 << 10, 120 << 10},
		{"llama3.2-1b", "rtx4090", 32, 12 << 10, 64 << 10},
		{"gpt2", "h200", 64, 4 << 10, 0},
		{"olmoe-7b", "h200", 32, 60 << 10, 0},
		{"dense-120b", "h200", 16, 0, 1536 << 10},
		{"qwen2.5-72b", "h200", 64, 0, 1536 << 10},
		{"qwen2.5-32b", "h200", 64, 0, 512 << 10},
		{"qwen3-moe", "h200", 16, 0, 768 << 10},
		{"qwen2.5-7b-lora", "rtx4090", 32, 0, 64 << 10},
	} {
		if i > 1 && os.Getenv("MTC_LONG") == "" {
			continue
		}
		t.Run(fmt.Sprintf("%s %s %d %d", tc.model, tc.machine, tc.rows, tc.device), func(t *testing.T) {
			t.Parallel()
			o := compiler.Options{Path: "small.mt", Text: []byte(small), Target: "cuda"}
			if tc.model != "" {
				o = compiler.Options{
					Path: "../../models/" + tc.model + ".mt", Target: "cuda",
					Set: []string{"train.seq=1024", fmt.Sprintf("train.batch=%d rows", tc.rows)},
				}
			}
			r := Request{Options: o, Machine: cost.Shipped(tc.machine), Device: tc.device * mib, Host: tc.host * mib}
			best, err := choose(t, r)
			if err != nil {
				t.Fatal(err)
			}
			alternatives(t, r, best)
		})
	}
}

// beside holds a plan of other options beside the choice: it must not be simulated to be over 3 % faster. It reports whether
// it fits.
func beside(t *testing.T, s *search, prep *compiler.Prepared, o compiler.Options, best *Choice) bool {
	t.Helper()
	p, err := prep.Plan(o, 0)
	if err != nil {
		return false
	}
	if d, h := Need(p, s.m); d > s.device || h > s.host {
		return false
	}
	line, err := cost.Simulate(p, cost.WorkOf(prep.Program()), s.m)
	if err != nil {
		t.Fatal(err)
	}
	if line.Seconds < 0.97*best.Timeline.Seconds {
		t.Errorf("%s, device %d, host %d MiB: %.4g s a step with %s, the choice takes %.4g s: %v",
			s.m.Name, s.device/mib, s.host/mib, line.Seconds, pins(o), best.Timeline.Seconds, best.from)
	}
	return true
}

// mostPinned is how many tasks the plans of a grid have together: at most half a minute of making them.
const mostPinned = 1_500_000

// alternatives simulates the grid of pinned options.
func alternatives(t *testing.T, r Request, best *Choice) {
	s := start(context.Background(), r)
	var l diag.List
	first, err := compiler.Prepare(s.ctx, s.r.Options, &l)
	if err != nil {
		t.Fatal(err)
	}
	batch := first.Model().Batch
	layers := 0
	for _, u := range first.Model().Units {
		layers = max(layers, u.Index+1)
	}
	few := func(kept int) string { return fmt.Sprint(max(1, layers-kept)) } // but for the last ones
	var most []string                                                       // but for every third
	for i := range layers {
		if i%3 > 0 {
			most = append(most, fmt.Sprintf("layer[%d]", i))
		}
	}
	third := strings.Join(most, ",")
	n, fit, long := 0, 0, 0
	precision := best.Options.GradPrecision // bf16 where nothing fits in f32
	tasks, units := int64(0), int64(len(first.Model().Units))
	for _, rows := range []int64{8, 4, 16, 2} {
		if batch%rows != 0 {
			continue
		}
		for _, way := range []struct {
			recompute string
			every     int64
			values    string
		}{{"none", 1, "none"}, {"all", 1, "none"}, {"all", 2, "none"}, {few(2), 1, "none"}, {few(4), 1, "3"}, {third, 1, "all"}} {
			o := s.r.Options
			o.MicroBatch, o.Recompute, o.InputEvery, o.SaveValues = rows, way.recompute, way.every, way.values
			prep, err := first.Again(o)
			if err != nil {
				t.Fatal(err)
			}
			try := func(o compiler.Options) {
				n++
				// Filling the device makes a plan several times, so that long ones are bounded together.
				if tasks += batch / rows * 7 * units; tasks > mostPinned {
					long++
					return
				}
				if beside(t, s, prep, o, best) {
					fit++
				}
			}
			micros := batch / rows
			o.DeviceMemory = s.device
			for _, groups := range []int64{1, 2, micros} {
				if groups > micros || groups == 2 && micros == 2 || groups > 8 && way.recompute == "all" {
					continue
				}
				o.Groups = groups
				if mixed := way.recompute != "none" && way.recompute != "all"; mixed {
					// What differs in whether it recomputes is of use where all micro-batches are alive at once.
					if o.Placement, o.GradPrecision, o.SaveInputs, o.GradHome = "stream", precision, "auto", "host"; groups == 1 {
						try(o)
					}
					continue
				}
				o.Placement, o.GradPrecision = "resident", "f32"
				try(o)
				o.Placement, o.GradPrecision = "stream", precision
				for _, x := range []struct {
					save, grads string
					slots       int64
				}{{"auto", "host", 0}, {"auto", "device", 2}, {"all", "host", 0}, {"auto", "8", 2}} {
					o.SaveInputs, o.GradHome, o.HostSlots = x.save, x.grads, x.slots
					try(o)
				}
			}
		}
	}
	if t.Logf("%d of %d alternatives fit; %d were too long to try", fit, n, long); fit == 0 {
		t.Errorf("none of %d alternatives fits", n)
	}
}

// pins are the options of a plan in few words.
func pins(o compiler.Options) string {
	return fmt.Sprintf("%s rows %d recompute %s every %d groups %d resident %q weights %d grads %s %s save %s values %s slots %d %d %d",
		o.Placement, o.MicroBatch, o.Recompute, o.InputEvery, o.Groups, o.Resident, o.DeviceWeights, o.GradHome, o.GradPrecision, o.SaveInputs, o.SaveValues, o.Slots, o.GradSlots, o.HostSlots)
}
