package engine

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cpu"
	"github.com/megatrain/mtc/runtime/device/null"
	"github.com/megatrain/mtc/runtime/plan"
)

func toyResult(e *Engine) (w [2][]float32) {
	for i, s := range e.plan.Slabs {
		w[i] = viewOf[float32](e, s.Weight, 0, toyN, new(bool))
	}
	return w
}

// TestTrainEqualsReference: losses and weights are those of a plain loop, bit for bit, with
// lanes undisturbed and with lanes held up at random; under -race it shows that the plan's
// waits suffice.
func TestTrainEqualsReference(t *testing.T) {
	const steps = 9
	losses, want := toyReference(steps)
	for seed := range int64(4) {
		o := cpu.Options{Threads: 2}
		if seed > 0 {
			o.Delay = cpu.Naps(seed, 200*time.Microsecond)
		}
		e := toyEngine(t, newToy(0), cpu.NewWith(o))
		tr := toyTraining(steps)
		tr.Hooks = []Hook{{OnStep: func(m *Metrics) error {
			if m.Loss != losses[m.Step-1] {
				t.Errorf("seed %d, step %d: loss %v, want %v", seed, m.Step, m.Loss, losses[m.Step-1])
			}
			return nil
		}}}
		if err := e.Train(tr); err != nil {
			t.Fatal(err)
		}
		for k, w := range toyResult(e) {
			for i := range w {
				if w[i] != want[k][i] {
					t.Fatalf("seed %d: weight %d of slab %d is %v, want %v", seed, i, k, w[i], want[k][i])
				}
			}
		}
	}
}

// TestDrainsChangeNothing: a run that drains, evaluates and saves after every other step, and
// one that goes on from a state in a new engine, give the weights of one that does not.
func TestDrainsChangeNothing(t *testing.T) {
	const steps = 8
	_, want := toyReference(steps)
	var calls []string
	note := func(what string) func(State) error {
		return func(s State) error {
			calls = append(calls, fmt.Sprint(what, s.Step))
			return nil
		}
	}
	eval := &Evaluation{Batches: 2, Batch: toyBatch}
	hooks := []Hook{{Name: "note", OnDrain: note("drain"), OnSave: note("save"), OnStop: note("stop"),
		OnEval: func(s State, r EvalResult) error {
			if r.Tokens != 2*toyMicros*toyN || math.IsNaN(r.Loss) {
				t.Errorf("evaluation %+v", r)
			}
			return note("eval")(s)
		}}}
	var state State
	var weights [2][]float32
	for _, upTo := range []int64{3, steps} {
		e := toyEngine(t, newToy(0), cpu.New())
		e.SetState(state)
		if weights[0] != nil {
			for k, w := range toyResult(e) {
				copy(w, weights[k])
			}
		}
		tr := toyTraining(upTo)
		tr.Eval, tr.EvalEvery, tr.SaveEvery, tr.Hooks = eval, 2, 3, hooks
		if err := e.Train(tr); err != nil {
			t.Fatal(err)
		}
		state, weights = e.State(), toyResult(e)
	}
	for k := range want {
		for i := range want[k] {
			if weights[k][i] != want[k][i] {
				t.Fatalf("weight %d of slab %d is %v, want %v", i, k, weights[k][i], want[k][i])
			}
		}
	}
	const order = "drain2 eval2 drain3 save3 drain3 stop3 drain4 eval4 drain6 eval6 save6 drain8 eval8 drain8 stop8"
	if got := strings.Join(calls, " "); got != order {
		t.Errorf("hooks ran as %s\nwant %s", got, order)
	}
	if state != (State{Step: steps, Updates: steps}) {
		t.Errorf("state %+v", state)
	}
}

// TestStepAllocatesNothing: over the null device the whole loop, hooks included, makes no
// garbage.
func TestStepAllocatesNothing(t *testing.T) {
	d := null.New()
	e := toyEngine(t, newToy(0), d)
	tr := toyTraining(0)
	tr.Hooks = []Hook{{OnStep: func(*Metrics) error { return nil }}}
	step := func() {
		tr.Steps = e.State().Step + 4
		if err := e.Train(tr); err != nil {
			t.Fatal(err)
		}
	}
	step()
	if n := testing.AllocsPerRun(50, step); n != 0 {
		t.Errorf("%v allocations in 4 steps and a drain", n)
	}
	if d.Launches == 0 || d.Copies == 0 {
		t.Errorf("nothing was submitted: %+v", d)
	}
}

// TestNullDeviceSeesOrder: the hand-made plan is in order; without one of its waits the null
// device reports a race, unless the wait only orders launches, which it cannot see, or
// repeats what others imply.
func TestNullDeviceSeesOrder(t *testing.T) {
	run := func(skip int) (waits int, err error) {
		p := newToy(skip)
		e := toyEngine(t, p, null.NewChecked())
		return p.waits, e.Train(toyTraining(6))
	}
	waits, err := run(0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for skip := 1; skip <= waits; skip++ {
		_, err := run(skip)
		var te *TaskError
		if err == nil {
			continue
		}
		if found++; !errors.As(err, &te) || !strings.Contains(err.Error(), "toy.mt:7") {
			t.Errorf("skip %d: %v does not name its task", skip, err)
		}
	}
	if found < 8 {
		t.Errorf("found %d of %d missing waits", found, waits)
	}
}

// TestFailureNamesTask: a kernel that panics ends the run with the task's name and line, and
// nothing hangs.
func TestFailureNamesTask(t *testing.T) {
	d := cpu.New()
	e := toyEngine(t, newToy(0), d)
	n := 0
	boom := &device.Kernel{Name: "toy.Boom", CPU: func(c device.CPU, a *device.Args) { panic("row 3 is bad") }}
	for i := range e.lists[plan.Steady][1] {
		c := &e.lists[plan.Steady][1][i]
		if c.kind == plan.Compute && e.plan.Tasks[c.task].Func == plan.Backward && n == 0 {
			c.fn = func(q device.Queue, b *Binding) { q.Launch(boom, ptrs(b.In[0])) }
			n++
		}
	}
	err := e.Train(toyTraining(50))
	want := "backward of layer[0], micro-batch 0 (toy.mt:7) failed: toy.Boom on lane compute: row 3 is bad"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("got %v\nwant %s", err, want)
	}
	if s := e.State(); s.Step != 1 {
		t.Errorf("%d steps were counted", s.Step)
	}
}

// TestNonFiniteStepsAreSkipped: such a step changes nothing and does not count as an
// optimizer step; enough of them in a row end the run.
func TestNonFiniteStepsAreSkipped(t *testing.T) {
	bad := map[int64]bool{1: true, 2: true, 5: true, 6: true, 7: true}
	e := toyEngine(t, newToy(0), cpu.New())
	real := toySteps.Norm
	var step int64
	e.steps.Norm = func(q device.Queue, a *NormArgs) {
		real(q, a)
		if bad[step] {
			q.Launch(toyKernel("nan", func(c device.CPU, a *device.Args, _ int64) { c.F64(a.P[0], 1)[0] = math.NaN() }), ptrs(a.Norm))
		}
	}
	var skipped []int64
	tr := toyTraining(20)
	tr.MaxSkipped = 3
	tr.Hooks = []Hook{{OnStep: func(m *Metrics) error {
		if step++; m.Skipped {
			skipped = append(skipped, m.Step)
		}
		return nil
	}}}
	err := e.Train(tr)
	var s *SkippedError
	if !errors.As(err, &s) || s.Step != 8 || s.InRow != 3 {
		t.Fatalf("got %v", err)
	}
	if fmt.Sprint(skipped) != "[2 3 6 7 8]" || e.State() != (State{Step: 8, Updates: 3, Skipped: 5, InRow: 3}) {
		t.Errorf("skipped %v, state %+v", skipped, e.State())
	}
}

// TestStop: the step in hand is finished and drained, and no other begins.
func TestStop(t *testing.T) {
	_, want := toyReference(3)
	e := toyEngine(t, newToy(0), cpu.New())
	tr := toyTraining(100)
	tr.Stop = func() bool { return e.State().Step == 3 }
	if err := e.Train(tr); err != nil {
		t.Fatal(err)
	}
	if e.State().Step != 3 || toyResult(e)[1][5] != want[1][5] {
		t.Errorf("stopped at %+v", e.State())
	}
}

// TestHookErrorsEndTheRun names the hook.
func TestHookErrorsEndTheRun(t *testing.T) {
	full := errors.New("disk is full")
	e := toyEngine(t, newToy(0), cpu.New())
	tr := toyTraining(4)
	tr.SaveEvery = 2
	tr.Hooks = []Hook{{Name: "checkpoint", OnSave: func(State) error { return full }}}
	if err := e.Train(tr); !errors.Is(err, full) || !strings.Contains(err.Error(), "checkpoint") {
		t.Errorf("got %v", err)
	}
}

// TestPrepareRefuses: a plan that does not fit the program or the device is named before
// anything runs.
func TestPrepareRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		spec func(p *toy, c *Config)
		want string
	}{
		{"no such function", func(p *toy, c *Config) { c.Templates = []Template{{Name: "mul"}} }, "template mul has no function forward"},
		{"no such template", func(p *toy, c *Config) { c.Templates = nil }, "no template 0"},
		{"tables", func(p *toy, c *Config) { c.Tables = make([]TableFunc, 1) }, "the plan has 0 tables, the program 1"},
		{"memory", func(p *toy, c *Config) { c.Device = cpu.NewWith(cpu.Options{Limit: 2048}) }, "arena device: out of device memory"},
		{"too many inputs", func(p *toy, c *Config) {
			for i := range p.Tasks {
				if p.Tasks[i].Kind == plan.Compute {
					p.Tasks[i].Bind.In = make([]plan.BufID, plan.MaxIO+1)
				}
			}
		}, "9 inputs, more than 8"},
	} {
		p := newToy(0)
		cfg := Config{Plan: &p.Plan, Templates: toyTemplates, Steps: toySteps, Device: null.New()}
		c.spec(p, &cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}

// warmer is a null device that takes note of what it is to prepare.
type warmer struct {
	*null.Device
	launches map[string]bool
}

func (w *warmer) Warm(run func(q device.Queue)) error {
	run(&noting{w.Queue(device.Compute), w.launches})
	return nil
}

type noting struct {
	device.Queue
	launches map[string]bool
}

func (q *noting) Launch(k *device.Kernel, _ device.Args) { q.launches[k.Name] = true }
func (q *noting) Copy(_, _ device.Ptr, _ int64)          {}

// TestDeviceIsWarmed: a device that prepares kernels is shown those of the compute lane, and
// nothing is submitted by that.
func TestDeviceIsWarmed(t *testing.T) {
	w := &warmer{null.New(), map[string]bool{}}
	toyEngine(t, newToy(0), w)
	if len(w.launches) == 0 || w.Launches != 0 || w.Copies != 0 {
		t.Errorf("noted %v; submitted %d launches and %d copies", w.launches, w.Launches, w.Copies)
	}
}
