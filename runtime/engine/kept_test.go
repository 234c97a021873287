package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cpu"
	"github.com/megatrain/mtc/runtime/plan"
)

// keeper is a CPU device whose compute lane keeps launches.
type keeper struct {
	device.Device
	lane *keeperLane
}

func (k *keeper) Queue(l device.Lane) device.Queue {
	if l == device.Compute {
		return k.lane
	}
	return k.Device.Queue(l)
}

type keeperLane struct {
	device.Queue
	taken   []func()
	keeping bool
	kept    int // times that something was kept
	again   int // times that it was enqueued again
	stale   int // from so many on it is refused, 0: never
}

func (q *keeperLane) Keeps() bool { return true }

func (q *keeperLane) Launch(k *device.Kernel, a device.Args) {
	if q.keeping {
		q.taken = append(q.taken, func() { q.Queue.Launch(k, a) })
		return
	}
	q.Queue.Launch(k, a)
}

func (q *keeperLane) Keep(run func()) func() bool {
	q.taken, q.keeping = nil, true
	run()
	q.keeping = false
	launches := q.taken
	q.kept++
	return func() bool {
		if q.stale > 0 && q.again >= q.stale {
			return false
		}
		q.again++
		for _, f := range launches {
			f()
		}
		return true
	}
}

// TestKeptEqualsReference: tasks that a device keeps and enqueues again give the bits of those enqueued
// one by one, with lanes held up at random, and also where what is kept goes stale.
func TestKeptEqualsReference(t *testing.T) {
	const steps = 11
	losses, want := toyReference(steps)
	for _, stale := range []int{0, 5} {
		d := cpu.NewWith(cpu.Options{Threads: 2, Delay: cpu.Naps(3, 200*time.Microsecond)})
		k := &keeper{Device: d, lane: &keeperLane{Queue: d.Queue(device.Compute), stale: stale}}
		e := toyEngine(t, newToy(0), k)
		tr := toyTraining(steps)
		tr.Hooks = []Hook{{OnStep: func(m *Metrics) error {
			if m.Loss != losses[m.Step-1] {
				t.Errorf("step %d: loss %v, want %v", m.Step, m.Loss, losses[m.Step-1])
			}
			return nil
		}}}
		if err := e.Train(tr); err != nil {
			t.Fatal(err)
		}
		for s, w := range toyResult(e) {
			for i := range w {
				if w[i] != want[s][i] {
					t.Fatalf("weight %d of slab %d is %v, want %v", i, s, w[i], want[s][i])
				}
			}
		}
		if k.lane.kept == 0 || stale == 0 && k.lane.again < 4*k.lane.kept/2 || stale > 0 && k.lane.again != stale {
			t.Errorf("kept %d times, enqueued again %d times", k.lane.kept, k.lane.again)
		}
		if stale == 0 {
			namesLast(t, e)
		}
	}
}

// namesLast: of tasks that were enqueued at once a device may know the first alone, so the last is named too.
func namesLast(t *testing.T, e *Engine) {
	t.Helper()
	seen := 0
	for i := range e.lists[plan.Steady][0] {
		c := &e.lists[plan.Steady][0][i]
		if c.kept == nil || len(c.kept.members) < 2 {
			continue
		}
		seen++
		want := ""
		if c.kept.first == c {
			want = "up to task " + e.Describe(c.kept.members[len(c.kept.members)-1].task)
		}
		if got := e.upTo(c.task); !strings.HasSuffix(got, want) || (want == "") != (got == "") {
			t.Errorf("task %s: %q, wanted %q", e.Describe(c.task), got, want)
		}
	}
	if seen == 0 {
		t.Error("no tasks were kept together")
	}
}
