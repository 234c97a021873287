package engine

import (
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cpu"
	"github.com/megatrain/mtc/runtime/device/null"
	"github.com/megatrain/mtc/runtime/plan"
)

// profiled trains with a profile and returns what it read.
func profiled(t *testing.T, e *Engine, skip, steps, until int64) []StepTimes {
	t.Helper()
	p, err := e.NewProfile(skip, steps)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	tr := toyTraining(until)
	tr.Profile = p
	if err := e.Train(tr); err != nil {
		t.Fatal(err)
	}
	got, err := p.Read()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestProfileKeepsOrder: a task runs after those before it on its lane and after those it waits
// for, on every lane's clock, and a step that was timed computes what others do.
func TestProfileKeepsOrder(t *testing.T) {
	const until = 9
	e := toyEngine(t, newToy(0), cpu.NewWith(cpu.Options{Threads: 2}))
	steps := profiled(t, e, 2, 4, until)
	if len(steps) != 4 || steps[0].Step != 4 || steps[3].Step != 7 {
		t.Fatalf("timed steps %v, wanted 4 to 7: the first one has a list of its own, two are passed over", steps)
	}
	r := e.plan.Lists[plan.Steady]
	var before map[int]int64 // ends by event, of the step before
	for _, s := range steps {
		ended, last := map[int]int64{}, [device.NumLanes]int64{}
		for i := r.Start; i < r.End; i++ {
			task := &e.plan.Tasks[i]
			start, end := s.Start[i-r.Start], s.End[i-r.Start]
			if start < 0 || end < start || start < last[task.Lane] {
				t.Errorf("step %d: task %s runs from %d to %d, the lane was busy until %d", s.Step, e.Describe(i), start, end, last[task.Lane])
			}
			last[task.Lane] = end
			for _, w := range task.Waits {
				done, ok := ended[w.Event]
				if w.Back == 1 {
					done, ok = before[w.Event]
				}
				if ok && start < done {
					t.Errorf("step %d: task %s starts at %d, what it waits for ends at %d", s.Step, e.Describe(i), start, done)
				}
			}
			if task.Event >= 0 {
				ended[task.Event] = end
			}
		}
		before = ended
	}
	_, want := toyReference(until)
	for k, w := range toyResult(e) {
		for i := range w {
			if w[i] != want[k][i] {
				t.Fatalf("weight %d of slab %d is %v, want %v", i, k, w[i], want[k][i])
			}
		}
	}
}

// TestProfileOfAShortRun: a run that ends before gives the steps that there were.
func TestProfileOfAShortRun(t *testing.T) {
	for until, want := range map[int64]int{1: 0, 3: 0, 4: 1, 5: 2} {
		e := toyEngine(t, newToy(0), cpu.New())
		if got := profiled(t, e, 2, 4, until); len(got) != want {
			t.Errorf("%d steps: %d were timed, wanted %d", until, len(got), want)
		}
	}
}

// TestProfileAllocatesNothing: neither does a step that is timed.
func TestProfileAllocatesNothing(t *testing.T) {
	e := toyEngine(t, newToy(0), null.New())
	p, err := e.NewProfile(0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	tr := toyTraining(0)
	tr.Profile = p
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
	if got, _ := p.Read(); len(got) != 52*3 {
		t.Errorf("%d steps were timed, wanted %d", len(got), 52*3)
	}
}
