package schedule

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/runtime/plan"
)

// TestPlanOfFile: the plan that a file makes gives the file again, and takes the time that the
// plan takes which the file was made of.
func TestPlanOfFile(t *testing.T) {
	for name, c := range map[string]struct {
		o      Options
		noClip bool
	}{
		"resident": {Options{}, false}, "stream": {Options{Placement: Stream}, false},
		"no clip": {Options{Placement: Stream}, true}, "groups": {Options{Placement: Stream, Groups: 2}, false},
		"gradients on the device": {Options{Placement: Stream, DeviceGrads: 3, SaveInputs: 2, Keep: 1}, false}, "rounded": {Options{Placement: Stream, HalfGrads: true}, true},
	} {
		y := toy{layers: 6, micros: 4, twoKinds: true, noClip: c.noClip}
		c.o.Target = "cuda"
		p, err := Build(y.program(), c.o)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Parse(JSON(p, toyWork(p), nil))
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.Plan()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		// Purposes come from bindings.
		ignore := cmp.Options{cmpopts.IgnoreFields(File{}, "Work"), cmpopts.IgnoreFields(FileArena{}, "Holds")}
		params := cmp.Options{cmpopts.IgnoreFields(FileSlab{}, "Params", "Decayed", "Spare"), cmpopts.IgnoreFields(FileBuffer{}, "Purpose")}
		if d := cmp.Diff(f, FileOf(got), ignore, params); d != "" {
			t.Errorf("%s: -file +again\n%.2000s", name, d)
		}
		m := cost.Shipped("h200")
		for _, l := range []plan.List{plan.Steady, plan.Drain, plan.Eval} {
			if p.Lists[l].Start == p.Lists[l].End {
				continue
			}
			want, err1 := cost.SimulateList(p, nil, m, l)
			have, err2 := cost.SimulateList(got, nil, m, l)
			if err1 != nil || err2 != nil {
				t.Fatalf("%s: %v %v", name, err1, err2)
			}
			if d := cmp.Diff(want, have); d != "" {
				t.Errorf("%s, %s: -plan +file\n%.2000s", name, l, d)
			}
		}
	}
}

// TestPlanOfBadFile: what Parse lets pass and no plan can be made of is an error.
func TestPlanOfBadFile(t *testing.T) {
	good, err := json.Marshal(bigToy(Options{Placement: Stream}, false))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		edit func(*File)
		want string
	}{
		{func(f *File) { f.Tasks[3].Step = -2 }, "belongs to step -2"},
		{func(f *File) { f.Tasks[3].Step = 1 }, "belongs to step 1"},
		{func(f *File) { f.Tasks[3].Kind, f.Tasks[3].Func = "rest", "forward" }, `is a "rest"`},
		{func(f *File) { f.Tasks[3].Kind, f.Tasks[3].Func = "update", "forward" }, `is a "update"`},
		{func(f *File) { f.Tasks[3].Slab = "none" }, `the slab "none"`},
		{func(f *File) { f.Tasks[3].Template = "none" }, `the template "none"`},
		{func(f *File) { f.Tasks[3].Reads = []string{"none"} }, `the buffer "none"`},
		{func(f *File) { f.Tasks[3].Src, f.Tasks[3].Dst = "none", "none" }, `the buffer "none"`},
		{func(f *File) { f.Buffers[0].Arena = "none" }, `the arena "none"`},
		{func(f *File) { f.Buffers[0].Bytes = -1 }, "has -1 bytes"},
		{func(f *File) { f.Tasks[3].Waits = []FileWait{{Task: 4}} }, "waits for task 4"},
		{func(f *File) { f.Tasks[3].Waits = []FileWait{{Task: 0, Back: 1}} }, "not in steady"},
		{func(f *File) {
			for i := range f.Tasks {
				f.Tasks[i].Waits = nil
			}
		}, "nothing orders it after task"},
		{func(f *File) { f.Results = []int{-1} }, "results come from task -1"},
		{func(f *File) { f.Tasks[3].List = "decode" }, "in parts"},
		{func(f *File) { f.Tasks[0].Adds = []int{0} }, "adds to the gradients [0]"}, // a copy
		{func(f *File) { backward(f).Adds = []int{1, 1} }, "adds to the gradients [1 1]"},
		{func(f *File) { backward(f).Adds = []int{-1} }, "adds to the gradients [-1]"},
		{func(f *File) { backward(f).Adds = []int{plan.MaxSlabs} }, "adds to the gradients"},
	} {
		f, err := Parse(good)
		if err != nil {
			t.Fatal(err)
		}
		c.edit(f)
		if _, err := f.Plan(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// backward is a task that makes gradients.
func backward(f *File) *FileTask {
	return &f.Tasks[slices.IndexFunc(f.Tasks, func(x FileTask) bool { return x.Func == plan.Backward.String() })]
}
