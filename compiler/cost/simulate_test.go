package cost

import (
	"math"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/plan"
)

// toy is a machine with round rates: 100 FLOP/s of products, 10 bytes/s of everything else,
// copies at 8 alone and 4 each when both ways are used, 2 while the host updates.
func toy() *Machine {
	f := func(x float64) Figure { return Figure{x, "made up"} }
	table := func(forms ...string) Table {
		var t Table
		for _, form := range forms {
			t.Points = append(t.Points, Point{form, 1, 1, 1, 100})
		}
		return t
	}
	return &Machine{
		Name: "toy", Target: "cuda", DeviceMemory: f(1e9), HostMemory: f(1e9), Cores: f(4),
		Rates: map[string]*Rates{"f32": {
			Product: table("nt", "nn", "tn"), Attention: table("forward", "backward"),
			Memory: f(10), Optimizer: f(10), Launch: f(0),
		}},
		Link: Link{H2D: f(8), D2H: f(8), Both: f(4), Updating: f(2)},
		Host: Host{Optimizer: f(10), Copying: f(5), Memory: f(10)},
	}
}

// toyPlan is a plan of one list, run as steady with nothing before it: tasks of a second or so.
func toyPlan(list plan.List, tasks ...plan.Task) *plan.Plan {
	p := &plan.Plan{Precision: "f32", Batch: 1, Seq: 100, Tasks: tasks, ResultsEvent: -1}
	for i := range tasks {
		t := &p.Tasks[i]
		t.ID, t.List = i, list
		p.Events = max(p.Events, t.Event+1)
	}
	p.Lists[list] = plan.Range{Start: 0, End: len(tasks)}
	return p
}

func copyOf(lane device.Lane, bytes int64, event int, waits ...plan.Wait) plan.Task {
	return plan.Task{Kind: plan.Prefetch, Lane: lane, Bytes: bytes, Template: -1, Event: event, Waits: waits}
}

func compute(moved int64, event int, waits ...plan.Wait) plan.Task {
	return plan.Task{Kind: plan.Compute, Lane: device.Compute, Moved: moved, Template: -1, Event: event, Waits: waits}
}

func update(moved int64, event int, waits ...plan.Wait) plan.Task {
	return plan.Task{Kind: plan.Update, Lane: device.Host, Moved: moved, Template: -1, Event: event, Waits: waits}
}

func TestContention(t *testing.T) {
	type span struct{ start, end float64 }
	wait := func(e int) plan.Wait { return plan.Wait{Event: e} }
	for _, tc := range []struct {
		name  string
		tasks []plan.Task
		want  []span
	}{
		{"a copy alone", []plan.Task{copyOf(device.H2D, 16, -1)}, []span{{0, 2}}},
		{"two ways share the link: 8 bytes at 4 each, then 8 of the longer one at 8",
			[]plan.Task{copyOf(device.H2D, 8, -1), copyOf(device.D2H, 16, -1)}, []span{{0, 2}, {0, 3}}},
		{"an order is kept on a lane, a wait between lanes",
			[]plan.Task{copyOf(device.H2D, 16, 0), compute(10, -1, wait(0)), copyOf(device.H2D, 8, -1)},
			[]span{{0, 2}, {2, 3}, {2, 3}}},
		// The update loses a quarter of its rate to one direction, and the copy half to it.
		{"a copy and the optimizer: 8 bytes at 4 take 2 s, in which 15 of 20 bytes are updated",
			[]plan.Task{copyOf(device.H2D, 8, -1), update(20, -1)}, []span{{0, 2}, {0, 2.5}}},
		{"both ways and the optimizer: 8 bytes at 2 take 4 s, in which 20 of 30 are updated",
			[]plan.Task{copyOf(device.H2D, 8, -1), copyOf(device.D2H, 8, -1), update(30, -1)},
			[]span{{0, 4}, {0, 4}, {0, 5}}},
		{"computing slows nothing down",
			[]plan.Task{copyOf(device.H2D, 8, -1), compute(10, -1)}, []span{{0, 1}, {0, 1}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := SimulateList(toyPlan(plan.Eval, tc.tasks...), nil, toy(), plan.Eval)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range got.Runs {
				if w := tc.want[r.Task]; math.Abs(r.Start-w.start) > 1e-9 || math.Abs(r.End-w.end) > 1e-9 {
					t.Errorf("task %d: %v to %v, want %v to %v", r.Task, r.Start, r.End, w.start, w.end)
				}
			}
			if len(got.Runs) != len(tc.want) {
				t.Errorf("%d runs, want %d", len(got.Runs), len(tc.want))
			}
		})
	}
}

func TestCoresAreShared(t *testing.T) {
	m := toy()
	m.Target = "cpu"
	// Computation wants all 4 cores and the update too: each runs at half speed. 10 bytes of
	// computation take 2 s; the update's other 10 bytes a second more.
	p := toyPlan(plan.Eval, compute(10, -1), update(20, -1))
	got, err := SimulateList(p, nil, m, plan.Eval)
	if err != nil {
		t.Fatal(err)
	}
	if end := []float64{got.Runs[0].End, got.Runs[1].End}; end[0] != 2 || end[1] != 3 {
		t.Errorf("ends %v, want 2 and 3", end)
	}
	// A copy takes one core of four: of the computation 3/4 are left. Two copies and the optimizer want six
	// when they are measured, so where they get 2/3 of their rates memory takes nothing. Where copies get 1/3,
	// it takes half of two copies and a quarter of one. Without another job two copies share memory alone.
	for _, tc := range []struct {
		both, updating float64
		tasks          []plan.Task
		ends           []float64
	}{
		{8, 8 * 2. / 3, []plan.Task{compute(10, -1), copyOf(device.H2D, 8, -1)}, []float64{1.25, 1}},
		{8, 8 / 3., []plan.Task{compute(10, -1), copyOf(device.H2D, 8, -1)}, []float64{4 / 3., 4 / 3.}},
		{8, 8 / 3., []plan.Task{copyOf(device.H2D, 8, -1), copyOf(device.D2H, 8, -1)}, []float64{1, 1}},
		{4, 8 / 3., []plan.Task{copyOf(device.H2D, 8, -1), copyOf(device.D2H, 8, -1)}, []float64{2, 2}},
	} {
		m.Link.Both.Value, m.Link.Updating.Value = tc.both, tc.updating
		m.Host.Copying.Value = m.Host.Optimizer.Value * 2 / 3
		got, err := SimulateList(toyPlan(plan.Eval, tc.tasks...), nil, m, plan.Eval)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range got.Runs {
			if math.Abs(r.End-tc.ends[r.Task]) > 1e-9 {
				t.Errorf("%v at once, %v beside the optimizer: task %d ends %v, want %v", tc.both, tc.updating, r.Task, r.End, tc.ends[r.Task])
			}
		}
	}
}

// TestGradientsAddedTo: a gradient's second contribution of a step reads the first.
func TestGradientsAddedTo(t *testing.T) {
	m := toy()
	m.Target = "cpu"
	l := Launch{Kernel: "linear.BackwardWeight", Shape: op.Shape{Class: op.Product, Form: "tn", M: 2, N: 5, K: 3}, FLOPs: 10, Times: 3, Grad: 1}
	table := Launch{Kernel: "embed.BackwardWeight", FLOPs: 2, Bytes: 100, Times: 1, Grad: 2}
	w := &Work{Funcs: [][][]Launch{make([][]Launch, plan.NumFuncs)}}
	w.Funcs[0][plan.Backward] = []Launch{l, table}
	seconds := func(target string, adds ...bool) float64 {
		m.Target = target
		task := plan.Task{Kind: plan.Compute, Func: plan.Backward, Lane: device.Compute, Event: -1, Bind: plan.Bind{Add: adds}}
		got, err := Estimates(toyPlan(plan.Eval, task), w, m, plan.Eval)
		if err != nil {
			t.Fatal(err)
		}
		return got[0].Seconds
	}
	// Of three times two add, 40 bytes at 10 bytes/s each; the table of 100 bytes takes 10 s, its rows 2.4.
	first, second := seconds("cpu", false, false), seconds("cpu", true, true)
	if gpu := seconds("cuda", false, false); math.Abs(first-gpu-8) > 1e-9 {
		t.Errorf("%v s on a CPU, %v on a GPU, want 8 s more", first, gpu)
	}
	if want := first + 4 - 10 + 2.4; math.Abs(second-want) > 1e-9 {
		t.Errorf("%v s when it adds, want %v", second, want)
	}
}

// steadyToy: each step computes for a second and sends 16 bytes away, whose update of a second
// runs under the next step's computation, which waits for it.
func steadyToy() *plan.Plan {
	step := func(first bool) []plan.Task {
		var waits []plan.Wait
		var out []plan.Task
		if !first {
			u := update(10, 2, plan.Wait{Event: 1, Back: 1})
			u.Back = 1
			out = append(out, u)
			waits = append(waits, plan.Wait{Event: 2})
		}
		out = append(out, compute(10, 0, waits...), copyOf(device.D2H, 16, 1, plan.Wait{Event: 0}))
		return out
	}
	a, b := step(true), step(false)
	p := &plan.Plan{Precision: "f32", Batch: 2, Seq: 50, Events: 3, ResultsEvent: 1, Tasks: append(a, b...)}
	for i := range p.Tasks {
		p.Tasks[i].ID = i
		if p.Tasks[i].List = plan.Steady; i < len(a) {
			p.Tasks[i].List = plan.First
		}
	}
	p.Lists[plan.First] = plan.Range{End: len(a)}
	p.Lists[plan.Steady] = plan.Range{Start: len(a), End: len(p.Tasks)}
	return p
}

func TestSteadyStep(t *testing.T) {
	got, err := Simulate(steadyToy(), nil, toy())
	if err != nil {
		t.Fatal(err)
	}
	// Update 1 s, computation 1 s, copy 2 s, one after the other.
	if !got.Settled || math.Abs(got.Seconds-4) > 1e-9 || got.Rate != 25 {
		t.Fatalf("step of %v s, settled %v, %v tok/s; want 4 s and 25 tok/s", got.Seconds, got.Settled, got.Rate)
	}
	if got.Bound != ByLink || math.Abs(got.Path[ByLink]-2) > 1e-9 || math.Abs(got.Path[ByHost]-1) > 1e-9 {
		t.Errorf("bound by %q, path %v; want 2 s of the link", got.Bound, got.Path)
	}
	for _, u := range got.Lanes {
		want := map[string]LaneUse{
			"compute": {Busy: 1, Exposed: 1, Tasks: 1}, "h2d": {},
			"d2h": {Busy: 2, Exposed: 2, Tasks: 1}, "host": {Busy: 1, Exposed: 1, Tasks: 1},
		}[u.Lane]
		want.Lane = u.Lane
		if math.Abs(u.Busy-want.Busy) > 1e-9 || math.Abs(u.Exposed-want.Exposed) > 1e-9 || u.Tasks != want.Tasks {
			t.Errorf("%+v, want %+v", u, want)
		}
	}
	for i, r := range got.Runs {
		if r.After >= i {
			t.Errorf("run %d starts after run %d, which starts later", i, r.After)
		}
	}
}

func TestWaitingForEachOther(t *testing.T) {
	p := toyPlan(plan.Eval, compute(1, 0, plan.Wait{Event: 1}), copyOf(device.H2D, 1, 1, plan.Wait{Event: 0}))
	// The first task's wait names an event that is recorded later: it holds nobody up.
	if _, err := SimulateList(p, nil, toy(), plan.Eval); err != nil {
		t.Errorf("a wait for what was never recorded: %v", err)
	}
}

func TestFunctionBounds(t *testing.T) {
	m := toy()
	m.Rates["f32"].Launch = Figure{3, "made up"}
	m.Rates["f32"].Kernels = map[string]Curve{"slow.Forward": {Points: []Size{{1, 5}}}}
	w := &Work{Funcs: [][][]Launch{{plan.Forward: {
		{Kernel: "linear.Forward", Shape: op.Shape{Class: op.Product, Form: "nt", M: 4, N: 4, K: 4, Count: 1}, FLOPs: 400, Bytes: 10, Times: 2},
		{Kernel: "add.Forward", FLOPs: 1000, Bytes: 20, Times: 1},
		{Kernel: "slow.Forward", Bytes: 20, Times: 1},
	}}}}
	task := compute(50, -1)
	task.Template, task.Func = 0, plan.Forward
	got, err := SimulateList(toyPlan(plan.Eval, task), w, m, plan.Eval)
	if err != nil {
		t.Fatal(err)
	}
	e := got.Tasks[0]
	// Products 2 x 4 s; memory 4 s; and one of 2 s of work that takes the least a launch can.
	if e.Seconds != 15 || e.Parts[ByProducts] != 8 || e.Parts[ByMemory] != 4 || e.Parts[ByLaunches] != 3 || e.Bound != ByProducts || e.Launches != 4 {
		t.Errorf("%+v", e)
	}
}

func TestSustainedRate(t *testing.T) {
	r := toy().Rates["f32"]
	l := Launch{Kernel: "linear.Forward", Shape: op.Shape{Class: op.Product, Form: "nt", M: 1, N: 1, K: 1, Count: 1}, FLOPs: 400}
	if s, b := r.seconds(&l, 0); s != 4 || b != ByProducts {
		t.Errorf("%v s by %s, want 4 s at 100 FLOP/s", s, b)
	}
	r.Sustained = Figure{0.5, "made up"}
	if s, _ := r.seconds(&l, 0); s != 8 {
		t.Errorf("%v s, want 8 s at half the rate", s)
	}
	// A function of the result reads and writes 20 bytes besides the product's 6, at 10 a second.
	l.Kernel, l.Bytes = "linear.ForwardGelu", 26
	if s, b := r.seconds(&l, 0); s != 10 || b != ByProducts {
		t.Errorf("%v s by %s, want 10 s", s, b)
	}
}

// TestOddDims: a product that is no multiple of 8 along what is contiguous pays for what is left over.
func TestOddDims(t *testing.T) {
	r := toy().Rates["f32"]
	for _, tc := range []struct {
		form    string
		m, n, k int64
		want    float64 // bytes
	}{
		{"nt", 16, 50257, 8, 2 * 16 * 8}, {"nt", 16, 50304, 8, 0}, {"nt", 50257, 16, 8, 0}, {"nt", 16, 1023, 8, 0},
		{"nn", 16, 8, 50257, 2 * 2 * 16 * 8}, {"tn", 50257, 8, 16, 2 * 16 * 8}, {"tn", 8, 50257, 16, 0},
	} {
		l := Launch{Kernel: "linear.Forward", Shape: op.Shape{Class: op.Product, Form: tc.form, M: tc.m, N: tc.n, K: tc.k, Count: 1}}
		if got := r.rest(&l); got != tc.want/10 {
			t.Errorf("%s %d %d %d: %v s, want %v", tc.form, tc.m, tc.n, tc.k, got, tc.want/10)
		}
	}
}

// TestCPUKernels: on a CPU groups of rows are products of their own, a kernel that was not measured runs
// like the mean of those that were, one that norms too like those that do, and a function of a product's
// result is a pass behind it.
func TestCPUKernels(t *testing.T) {
	r := &Rates{
		Product: Table{Points: []Point{{"nt", 64, 8, 8, 50}, {"nt", 512, 8, 8, 400}}}, Memory: Figure{1000, "made up"},
		Kernels: map[string]Curve{
			"a.Forward": {Points: []Size{{1, 10}}}, "b.Forward": {Points: []Size{{1, 30}}}, "b.Forward" + op.WithNorm: {Points: []Size{{1, 5}}},
			"gelu.Forward": {Points: []Size{{1, 64}}}, "update": {Points: []Size{{1, 1e9}}},
		},
	}
	product := func(kernel string, groups int64) Launch {
		return Launch{Kernel: kernel, Shape: op.Shape{Class: op.Product, Form: "nt", M: 512, N: 8, K: 8, Count: 1, Groups: groups}, FLOPs: 8000}
	}
	mean := 4 / (1/10.0 + 1/30.0 + 1/5.0 + 1/64.0)
	for _, tc := range []struct {
		l         Launch
		cpu, cuda float64
	}{
		{product("linear.Forward", 0), 20, 20},
		{product("grouped.Forward", 8), 160, 20},
		{product("linear.ForwardGelu", 0), 20 + 2*4*512*8/64.0, 20},
		{Launch{Kernel: "a.Forward", Bytes: 300}, 30, 30},
		{Launch{Kernel: "b.Forward", Bytes: 300}, 10, 10},
		{Launch{Kernel: "b.Forward", Bytes: 300, Norm: true}, 60, 60},
		{Launch{Kernel: "c.Forward", Bytes: 300}, 300 / mean, 0.3},
	} {
		for _, cores := range []int64{2, 0} {
			want := tc.cuda
			if cores > 0 {
				want = tc.cpu
			}
			if got, _ := r.seconds(&tc.l, cores); math.Abs(got-want) > 1e-9 {
				t.Errorf("%s of %d groups, on %d cores: %v s, want %v", tc.l.Kernel, tc.l.Shape.Groups, cores, got, want)
			}
		}
	}
}
