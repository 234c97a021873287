package compiler

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/megatrain/mtc/compiler/memplan"
	"github.com/megatrain/mtc/runtime/plan"
)

// TestAnyChoicesGiveAPlan: whatever is pinned together, a plan comes out that the verifier
// accepts and that fits, or a finding about the options.
func TestAnyChoicesGiveAPlan(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	count := func() string { return strconv.Itoa(r.IntN(9)) }
	plans, refused := 0, map[string]int{}
	for range 150 {
		o := Options{
			Target: pick("cpu", "cuda"), Placement: pick("resident", "stream", "stream", "auto"),
			MicroBatch: []int64{0, 1, 4, 8, 16}[r.IntN(5)], Groups: []int64{0, 0, 1, 2, 4}[r.IntN(5)],
			Order: pick("", "", "auto", "layer", "batch"), Recompute: pick("", "auto", "none", "all", "all", "layer", "1", "layer[0]"),
			Resident: pick("", "", "auto", count(), "layer[1],head", "nothing"), DeviceWeights: r.Int64N(4),
			GradHome: pick("", "auto", "host", "device", count()), GradPrecision: pick("", "f32", "bf16"),
			SaveInputs: pick("", "auto", "none", "all", count()), SaveValues: pick("", "auto", "none", "all", count()), InputEvery: r.Int64N(4),
			Slots: []int64{0, 0, 1, 2, 3}[r.IntN(5)], GradSlots: []int64{0, 0, 1, 3}[r.IntN(4)], HostSlots: r.Int64N(4),
			Set: []string{"train.clip=" + pick("1.0", "none")},
		}
		if r.IntN(3) == 0 {
			o.DeviceMemory = 2<<20 + r.Int64N(30<<20)
			if o.Target == "cuda" {
				o.DeviceMemory += memplan.Reserve(&plan.Plan{Target: "cuda"})
			}
		}
		p, l := fit(o)
		if p == nil {
			for _, d := range l.Sorted() {
				refused[d.Code]++
				if d.Code != "MT0403" && d.Code != "MT0405" && d.Code != "MT0415" {
					t.Errorf("%+v: %v", o, l.Err())
				}
			}
			continue
		}
		plans++
		if n, _ := memplan.Peak(p); o.DeviceMemory > 0 && n+memplan.Reserve(p) > o.DeviceMemory {
			t.Errorf("%+v: the plan takes %d", o, n)
		}
	}
	if plans < 40 || len(refused) < 2 {
		t.Errorf("%d plans; refused: %v", plans, refused)
	}
	t.Logf("%d plans; refused: %v", plans, refused)
}
