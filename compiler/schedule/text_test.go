package schedule

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/megatrain/mtc/compiler/cost"
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// bigToy has costs in the proportions of a real model.
func bigToy(o Options, noClip bool) *File {
	y := toy{layers: 6, micros: 4, twoKinds: true, noClip: noClip}
	prog := y.program()
	for _, s := range prog.Slabs {
		s.Elems *= 256
		s.Decay *= 256
	}
	for _, t := range prog.Templates {
		for f, fn := range t.Funcs {
			if fn != nil {
				fn.FLOPs = 20_000_000 * int64(1+f/3)
			}
		}
	}
	p, err := Build(prog, o)
	if err != nil {
		panic(err)
	}
	if err := Verify(p); err != nil {
		panic(err)
	}
	f := FileOf(p)
	f.Work = toyWork(p)
	return f
}

// toyWork is a launch without cost for every function.
func toyWork(p *plan.Plan) *cost.Work {
	w := &cost.Work{}
	for range p.Templates {
		funcs := make([][]cost.Launch, plan.NumFuncs)
		for f := range funcs {
			funcs[f] = []cost.Launch{{Kernel: "toy.Run", Times: 1}}
		}
		w.Funcs = append(w.Funcs, funcs)
	}
	return w
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("MTC_UPDATE") != "" {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

func TestInspectText(t *testing.T) {
	for name, f := range map[string]*File{
		"inspect_stream.txt":        bigToy(Options{Placement: Stream}, false),
		"inspect_stream_noclip.txt": bigToy(Options{Placement: Stream, Groups: 2}, true),
		"inspect_resident.txt":      bigToy(Options{}, false),
	} {
		var out strings.Builder
		f.WriteHead(&out)
		out.WriteString("\n")
		f.WriteKinds(&out, "steady")
		out.WriteString("\n")
		f.WriteMemory(&out, true)
		out.WriteString("\n")
		f.WriteList(&out, "prefill")
		out.WriteString("\n")
		if err := f.WriteTask(&out, f.Tasks[len(f.Tasks)/3].ID); err != nil {
			t.Error(err)
		}
		for _, line := range strings.Split(out.String(), "\n") {
			if len(line) > Width {
				t.Errorf("%s: a line of %d columns: %s", name, len(line), line)
			}
		}
		golden(t, name, out.String())
	}
}

func TestJSONRoundTrip(t *testing.T) {
	p := mustBuild(t, toy{layers: 3, micros: 2, tied: true}, Options{Placement: Stream})
	text := JSON(p, toyWork(p), nil)
	if !bytes.Equal(text, JSON(mustBuild(t, toy{layers: 3, micros: 2, tied: true}, Options{Placement: Stream}), toyWork(p), nil)) {
		t.Error("the same plan gives two texts")
	}
	f, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(FileOf(p), f, cmpopts.IgnoreFields(File{}, "Work")); d != "" {
		t.Errorf("what was read is not what was written:\n%s", d)
	}
	for _, bad := range []string{"", "{", `{"tasks":[{"id":1}]}`, `{"lanes":["h2d"],"tasks":[{"id":0,"lane":"h2d","waits":[{"task":7}]}]}`} {
		if _, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%q is no schedule", bad)
		}
	}
}

// While compute is slower than the copies, the stream keeps it busy: its gaps are the first
// prefetch, the last offload and the first update, not one for each layer.
func TestStreamOverlaps(t *testing.T) {
	f := bigToy(Options{Placement: Stream}, false)
	// Functions take 2 ms, the device's other work next to nothing.
	for i := range f.Tasks {
		if t := &f.Tasks[i]; t.Kind == plan.Compute.String() {
			t.Bytes = 2e12
		}
	}
	p, err := f.Plan()
	if err != nil {
		t.Fatal(err)
	}
	m := *cost.Shipped("h200")
	r := *m.Rates["f32"]
	r.Memory.Value, r.Optimizer.Value, r.Launch.Value, r.Kernels = 1e15, 1e15, 0, nil
	m.Rates = map[string]*cost.Rates{"f32": &r}
	m.Link.H2D.Value, m.Link.D2H.Value, m.Link.Both.Value, m.Link.Updating.Value = 20e9, 20e9, 20e9, 20e9
	m.Host.Optimizer.Value, m.Host.Copying.Value = 200e9, 200e9
	line, err := cost.Simulate(p, nil, &m)
	if err != nil {
		t.Fatal(err)
	}
	last, worst, gaps := 0.0, 0.0, 0
	for _, r := range line.Runs {
		if r.Lane != device.Compute || r.Start < 0 {
			continue
		}
		if gap := r.Start - last; last > 0 && gap > 1e-6 {
			gaps++
			worst = max(worst, gap)
		}
		last = r.End
	}
	if gaps > 1 {
		t.Errorf("the compute lane waits %d times within a step, %.3g s at most", gaps, worst)
	}
}
