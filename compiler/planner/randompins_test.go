package planner

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/lang/diag"
)

// TestRandomPins: over models, machines and memories of all sizes, of plans with every option drawn by chance none
// that fits is simulated to be over 3 % faster than what is chosen.
func TestRandomPins(t *testing.T) {
	rounds, draws := 1, 20
	if os.Getenv("MTC_LONG") != "" {
		rounds, draws = 12, 150
	}
	for k, m := range capped {
		if m.edge {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewSource(int64(1000 + k)))
			between := func(r [2]int64) int64 { return (r[0] + rng.Int63n(r[1]-r[0]+1)) * mib }
			n, fit := 0, 0
			for range rounds {
				r := cappedRequest(k, between(m.device), between(m.host))
				if m.target == "cuda" {
					names := cost.Names()
					r.Machine = cost.Shipped(names[rng.Intn(len(names))])
				}
				best, err := choose(t, r)
				var short *ShortError
				if errors.As(err, &short) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				s := start(context.Background(), r)
				first, err := compiler.Prepare(s.ctx, s.r.Options, &diag.List{})
				if err != nil {
					t.Fatal(err)
				}
				for range draws {
					n++
					o := drawn(rng, s, first, best)
					prep, err := first.Again(o)
					if err != nil {
						continue
					}
					if beside(t, s, prep, o, best) {
						fit++
					}
				}
			}
			t.Logf("%d of %d drawn plans fit", fit, n)
		})
	}
}

// drawn are options drawn by chance: half of them are the choice's.
func drawn(rng *rand.Rand, s *search, first *compiler.Prepared, best *Choice) compiler.Options {
	o := best.Options
	units := first.Model().Units
	layers := 0
	for _, u := range units {
		layers = max(layers, u.Index+1)
	}
	some := func() string {
		if rng.Intn(2) == 0 {
			return fmt.Sprint(rng.Intn(layers + 1))
		}
		var out []string
		for i := range layers {
			if rng.Intn(3) > 0 {
				out = append(out, fmt.Sprintf("layer[%d]", i))
			}
		}
		if len(out) == 0 {
			return "0"
		}
		return strings.Join(out, ",")
	}
	of := func(words ...string) string { return words[rng.Intn(len(words))] }
	rows := func() []int64 {
		var out []int64
		for r := int64(1); r <= first.Model().Batch; r++ {
			if first.Model().Batch%r == 0 {
				out = append(out, r)
			}
		}
		return out
	}()
	change := func(f func()) {
		if rng.Intn(2) == 0 {
			f()
		}
	}
	change(func() { o.MicroBatch = rows[rng.Intn(len(rows))] })
	micros := first.Model().Batch / o.MicroBatch
	change(func() { o.Groups = rows[rng.Intn(len(rows))] })
	o.Groups = min(max(1, o.Groups), micros)
	change(func() { o.Recompute = of("none", "all", some(), some()) })
	change(func() { o.InputEvery = 1 + int64(rng.Intn(3)) })
	if s.m.Target == "cuda" {
		change(func() { o.Placement = of("resident", "stream", "stream") })
	}
	o.DeviceMemory = 0
	if o.Placement != "stream" {
		return o
	}
	change(func() { o.Resident = some() })
	change(func() { o.DeviceWeights = int64(rng.Intn(layers + 1)) })
	change(func() { o.GradHome = of("host", "device", fmt.Sprint(rng.Intn(layers+1))) })
	change(func() { o.SaveInputs = of("none", "all", fmt.Sprint(rng.Intn(layers+1))) })
	change(func() { o.SaveValues = of("none", "all", fmt.Sprint(rng.Intn(layers+1))) })
	change(func() { o.Slots, o.GradSlots, o.HostSlots = rng.Int63n(5), rng.Int63n(5), rng.Int63n(7) })
	if rng.Intn(4) == 0 { // as much state on the device as there is room for
		o.Resident, o.DeviceMemory = "auto", s.device
	}
	return o
}
