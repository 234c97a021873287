package invariants

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/megatrain/mtc/compiler"
	"github.com/megatrain/mtc/lang/diag"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/null"
	"github.com/megatrain/mtc/runtime/engine"
)

// stub launches a kernel that names every address a task was bound to.
var stub = &device.Kernel{Name: "stub"}

func launchAll(q device.Queue, ptrs ...device.Ptr) {
	var a device.Args
	n := copy(a.P[:], ptrs)
	q.Launch(stub, a)
	if n < len(ptrs) {
		launchAll(q, ptrs[n:]...)
	}
}

// bound is a template function that touches all memory it is bound to.
func bound(q device.Queue, b *engine.Binding) {
	for _, list := range [][]device.Ptr{b.In[:], b.Out[:], b.DIn[:], b.DOut[:], b.Weights[:], b.Grads[:], b.Squares[:], b.Tables} {
		launchAll(q, list...)
	}
	launchAll(q, b.Saved, b.Work, b.State, b.Targets, b.Scalars, b.Partials, b.Router)
}

var stubSteps = engine.Steps{
	Norm:       func(q device.Queue, a *engine.NormArgs) { launchAll(q, a.Squares, a.Norm, a.Scalars) },
	Accumulate: func(q device.Queue, a *engine.AccumulateArgs) { launchAll(q, a.Sum, a.Grad, a.Squares) },
	Reduce:     func(q device.Queue, a *engine.ReduceArgs) { launchAll(q, a.Norms, a.Partials, a.Scalars) },
	Round:      func(q device.Queue, a *engine.RoundArgs) { launchAll(q, a.Half, a.Grad, a.Squares) },
	Update:     func(q device.Queue, a *engine.UpdateArgs) { launchAll(q, a.Weight, a.Lo, a.M, a.V, a.Grad, a.Scalars) },
}

// TestPlansKeepOrder runs every family's plans over the null device, which sees copies that are
// not ordered with what else touches their bytes: training with drains and evaluations between,
// then generation.
func TestPlansKeepOrder(t *testing.T) {
	none := func(int64, []int32, []int32) error { return nil }
	for _, family := range families {
		for _, o := range []compiler.Options{
			{MicroBatch: 4},
			{MicroBatch: 2, Groups: 2},
			{MicroBatch: 4, Placement: "stream"},
			{MicroBatch: 2, Placement: "stream", Slots: 1, GradSlots: 1, Recompute: "all"},
			{MicroBatch: 1, Placement: "stream", Slots: 3, Groups: 4},
			{MicroBatch: 4, Placement: "stream", Set: []string{"train.clip=none"}},
			{MicroBatch: 4, Placement: "stream", DeviceMemory: 1 << 21},
			{MicroBatch: 4, Placement: "stream", DeviceMemory: 1 << 21, Set: []string{"train.clip=none"}},
			{MicroBatch: 2, Placement: "stream", SaveInputs: "all", Recompute: "all"},
			{MicroBatch: 1, Placement: "stream", SaveInputs: "1", Groups: 2},
			{MicroBatch: 2, Placement: "stream", GradHome: "device", HostSlots: 1},
			{MicroBatch: 1, Placement: "stream", GradHome: "device", Groups: 2, Set: []string{"train.clip=none"}},
			{MicroBatch: 1, Placement: "stream", Resident: "2", DeviceWeights: 1, Groups: 2},
			{MicroBatch: 2, Placement: "stream", GradPrecision: "bf16"},
			{MicroBatch: 2, Target: "cuda", Placement: "stream", GradPrecision: "bf16", GradHome: "1", Resident: "1"},
			{MicroBatch: 4, Target: "cuda"},
			{MicroBatch: 2, Target: "cuda", Placement: "stream", Recompute: "all"},
			{MicroBatch: 2, Target: "cuda", Placement: "stream", Groups: 2, Set: []string{"train.clip=none"}},
		} {
			if o.Groups > 1 && routed(family) {
				continue
			}
			t.Run(fmt.Sprintf("%s %+v", family, o), func(t *testing.T) {
				o.Path = filepath.Join("testdata", "models", family+".mt")
				var diags diag.List
				res, err := compiler.Compile(context.Background(), o, &diags)
				if err != nil {
					t.Fatal(err)
				}
				var templates []engine.Template
				for _, name := range res.Plan.Templates {
					x := engine.Template{Name: name}
					for f := range x.Funcs {
						x.Funcs[f] = bound
					}
					templates = append(templates, x)
				}
				tables := make([]engine.TableFunc, len(res.Plan.Tables))
				for i := range tables {
					tables[i] = func([]float32) {}
				}
				d := null.NewChecked()
				e, err := engine.New(engine.Config{Plan: res.Plan, Templates: templates, Tables: tables, Steps: stubSteps, Device: d})
				if err != nil {
					t.Fatal(err)
				}
				if err := e.Train(&engine.Training{
					Steps: 8, Batch: none, LR: func(int64) float64 { return 1 },
					EvalEvery: 3, Eval: &engine.Evaluation{Batches: 2, Batch: none}, SaveEvery: 4,
				}); err != nil {
					t.Fatal(err)
				}
				for _, n := range []int{5, 1} {
					if _, err := e.Infer(make([]int32, n), 0); err != nil {
						t.Fatal(err)
					}
				}
				if d.Launches < 100 || d.Copies < 10 {
					t.Errorf("%d launches, %d copies", d.Launches, d.Copies)
				}
			})
		}
	}
}
