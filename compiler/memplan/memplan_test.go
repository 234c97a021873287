package memplan

import (
	"math/rand/v2"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/plan"
)

// draft is a plan with one arena and hand-made tasks.
type draft struct {
	plan.Plan
	class []Class
}

func newDraft() *draft {
	d := &draft{class: []Class{Static}}
	d.Arenas = []plan.Arena{{Name: "a", Memory: device.DeviceMemory}}
	d.Buffers = []plan.Buffer{{}}
	return d
}

func (d *draft) buffer(bytes int64, c Class) plan.BufID {
	d.Buffers = append(d.Buffers, plan.Buffer{Bytes: bytes})
	d.class = append(d.class, c)
	return plan.BufID(len(d.Buffers) - 1)
}

func (d *draft) list(l plan.List, tasks ...plan.Task) {
	start := len(d.Tasks)
	d.Tasks = append(d.Tasks, tasks...)
	for i := int(l); i < len(d.Lists); i++ {
		d.Lists[i] = plan.Range{Start: len(d.Tasks), End: len(d.Tasks)}
	}
	d.Lists[l].Start = start
}

func writes(ids ...plan.BufID) plan.Task { return plan.Task{Writes: ids} }
func reads(ids ...plan.BufID) plan.Task  { return plan.Task{Reads: ids} }

func (d *draft) place(t *testing.T) {
	t.Helper()
	if err := Place(&d.Plan, d.class); err != nil {
		t.Fatal(err)
	}
}

func overlap(a, b *plan.Buffer) bool { return a.Off < b.Off+b.Bytes && b.Off < a.Off+a.Bytes }

func TestPooledMemoryIsReused(t *testing.T) {
	d := newDraft()
	a, b, c := d.buffer(1000, Pooled), d.buffer(1000, Pooled), d.buffer(1000, Pooled)
	d.list(plan.First, writes(a), plan.Task{Reads: []plan.BufID{a}, Writes: []plan.BufID{b}}, plan.Task{Reads: []plan.BufID{b}, Writes: []plan.BufID{c}}, reads(c))
	d.place(t)
	if d.Buffers[a].Off != d.Buffers[c].Off || d.Buffers[a].Off == d.Buffers[b].Off {
		t.Errorf("a at %d, b at %d, c at %d: wanted c in a's place", d.Buffers[a].Off, d.Buffers[b].Off, d.Buffers[c].Off)
	}
	if want := 2 * align(1000); d.Arenas[0].Bytes != want {
		t.Errorf("the arena has %d bytes, wanted %d", d.Arenas[0].Bytes, want)
	}
}

// A second group of micro-batches fills its buffers anew; the first one's order decides.
func TestLifetimeEndsBeforeTheNextFill(t *testing.T) {
	d := newDraft()
	a, b := d.buffer(256, Pooled), d.buffer(256, Pooled)
	group := []plan.Task{writes(a), reads(a), writes(b), reads(b)}
	d.list(plan.First, append(group, group...)...)
	d.place(t)
	if d.Buffers[a].Off != d.Buffers[b].Off {
		t.Error("a and b are never needed at once and yet apart")
	}
}

// What is added to stays what it was.
func TestAddingExtendsALifetime(t *testing.T) {
	d := newDraft()
	a, b := d.buffer(256, Pooled), d.buffer(256, Pooled)
	d.list(plan.First, writes(a), writes(b), plan.Task{Reads: []plan.BufID{a}, Writes: []plan.BufID{a}}, reads(a))
	d.place(t)
	if d.Buffers[a].Off == d.Buffers[b].Off {
		t.Error("b lies over a, which is added to later")
	}
}

func TestGenerationLiesOverTraining(t *testing.T) {
	d := newDraft()
	work := d.buffer(512, Static)
	never := d.buffer(512, Static)
	act := d.buffer(4096, Pooled)
	cache, out := d.buffer(1024, Gen), d.buffer(256, GenPooled)
	d.list(plan.First, plan.Task{Writes: []plan.BufID{act, work, never}}, reads(act))
	d.list(plan.Prefill, plan.Task{Reads: []plan.BufID{cache}, Writes: []plan.BufID{cache, out, work}}, reads(out))
	d.place(t)
	a := d.Arenas[0]
	if d.Buffers[work].Off != 0 || d.Buffers[cache].Off != d.Buffers[act].Off || overlap(&d.Buffers[cache], &d.Buffers[out]) {
		t.Errorf("work at %d, activations at %d, caches at %d, out at %d", d.Buffers[work].Off, d.Buffers[act].Off, d.Buffers[cache].Off, d.Buffers[out].Off)
	}
	if a.GenBytes != 512+1024+256 || a.Bytes != 512+4096+512 {
		t.Errorf("generation has %d bytes of %d", a.GenBytes, a.Bytes)
	}
	if d.Buffers[never].Off < a.GenBytes {
		t.Error("what generation never touches lies in its part")
	}
}

func TestParityHasTwoCopies(t *testing.T) {
	d := newDraft()
	a, b := d.buffer(1000, Static), d.buffer(8, Static)
	d.Buffers[a].Parity = true
	d.place(t)
	if d.Buffers[b].Off < 2000 || d.Buffers[b].Off%Align != 0 {
		t.Errorf("the buffer behind two copies of 1000 bytes lies at %d", d.Buffers[b].Off)
	}
}

// Buffers that are needed at the same time never overlap, whatever the sizes and lifetimes, and
// equal sizes need no more than the most that is alive at once.
func TestRandomPools(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		d := newDraft()
		n, equal := 1+r.IntN(60), r.IntN(2) == 0
		tasks := make([]plan.Task, 2*n)
		alive := make([][]plan.BufID, 2*n)
		for range n {
			size := int64(Align)
			if !equal {
				size = 1 + r.Int64N(5000)
			}
			id := d.buffer(size, Pooled)
			from := r.IntN(2 * n)
			to := from + r.IntN(2*n-from)
			tasks[from].Writes = append(tasks[from].Writes, id)
			if to > from {
				tasks[to].Reads = append(tasks[to].Reads, id)
			}
			for k := from; k <= to; k++ {
				alive[k] = append(alive[k], id)
			}
		}
		d.list(plan.First, tasks...)
		d.place(t)
		most := 0
		for _, ids := range alive {
			most = max(most, len(ids))
			for i, a := range ids {
				for _, b := range ids[:i] {
					if overlap(&d.Buffers[a], &d.Buffers[b]) {
						t.Fatalf("buffers %d and %d overlap while both are alive", a, b)
					}
				}
			}
		}
		if equal && d.Arenas[0].Bytes != int64(most)*Align {
			t.Errorf("%d equal buffers alive at once take %d bytes", most, d.Arenas[0].Bytes)
		}
	}
}

func TestClassesMustFit(t *testing.T) {
	d := newDraft()
	d.buffer(1, Static)
	if Place(&d.Plan, d.class[:1]) == nil {
		t.Error("a buffer without a class was placed")
	}
}

// TestThreads: scratch memory goes with the threads of a CPU, and none of it is on a GPU.
func TestThreads(t *testing.T) {
	for _, tc := range []struct {
		target  string
		threads int64
		want    int64
	}{{"cpu", 2, 0}, {"cpu", 8, 6 * ThreadBytes}, {"cpu", 0, -ThreadBytes}, {"cuda", 64, 0}} {
		if got := Threads(&plan.Plan{Target: tc.target}, tc.threads); got != tc.want {
			t.Errorf("%d threads on %s: %d bytes, want %d", tc.threads, tc.target, got, tc.want)
		}
	}
}
