package cpu

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/megatrain/mtc/runtime/device"
)

func alloc(t *testing.T, d *Device, n int64) device.Ptr {
	t.Helper()
	p, err := d.Alloc(device.DeviceMemory, n)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func open(t *testing.T, o Options) *Device {
	d := NewWith(o)
	t.Cleanup(func() { d.Close() })
	return d
}

// TestLanesOverlap: each of two lanes waits for the other's kernel to have begun, which no
// device that runs one lane at a time can pass.
func TestLanesOverlap(t *testing.T) {
	d := open(t, Options{Threads: 2})
	a, b := make(chan int), make(chan int)
	meet := func(mine, other chan int) *device.Kernel {
		return &device.Kernel{Name: "meet", CPU: func(device.CPU, *device.Args) {
			close(mine)
			select {
			case <-other:
			case <-time.After(2 * time.Minute):
				panic("the other lane did not start")
			}
		}}
	}
	d.Queue(device.Compute).Launch(meet(a, b), device.Args{})
	d.Queue(device.Host).Launch(meet(b, a), device.Args{})
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
}

var add = &device.Kernel{Name: "add", CPU: func(c device.CPU, a *device.Args) {
	x, n := c.F32(a.P[0], a.I[0]), a.I[0]
	c.Parallel(n, 16, func(lo, hi int64) {
		for i := lo; i < hi; i++ {
			x[i] += a.F[0]
		}
	})
}}

// pipeline runs rounds of copy in, add one, copy out, put back over four lanes with one slot.
// It leaves out wait number skip (1 to 4; 0: none).
func pipeline(t *testing.T, d *Device, skip int) []float32 {
	const n, rounds = 256, 60
	host, slot, back := alloc(t, d, 4*n), alloc(t, d, 4*n), alloc(t, d, 4*n)
	in, ran, out, updated := d.NewEvent(), d.NewEvent(), d.NewEvent(), d.NewEvent()
	h2d, comp, d2h, opt := d.Queue(device.H2D), d.Queue(device.Compute), d.Queue(device.D2H), d.Queue(device.Host)
	wait := func(i int, q device.Queue, e device.Event) {
		if i != skip {
			q.Wait(e)
		}
	}
	for range rounds {
		wait(1, h2d, updated) // the host copy is new, and so the slot is free
		h2d.Copy(slot, host, 4*n)
		h2d.Record(in)
		wait(2, comp, in)
		var a device.Args
		a.P[0], a.I[0], a.F[0] = slot, n, 1
		comp.Launch(add, a)
		comp.Record(ran)
		wait(3, d2h, ran)
		d2h.Copy(back, slot, 4*n)
		d2h.Record(out)
		wait(4, opt, out)
		opt.Copy(host, back, 4*n)
		opt.Record(updated)
	}
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	for i, v := range d.F32(host, n) {
		if skip == 0 && v != rounds {
			t.Fatalf("element %d is %v, want %d", i, v, rounds)
		}
	}
	return d.F32(host, n)
}

// TestDelaysChangeNothing: the pipeline gives the same values however its lanes are held up.
// Under -race it also shows that its waits suffice.
func TestDelaysChangeNothing(t *testing.T) {
	pipeline(t, open(t, Options{Threads: 3}), 0)
	for seed := range int64(3) {
		pipeline(t, open(t, Options{Threads: 3, Delay: Naps(seed, 60*time.Microsecond)}), 0)
	}
}

// TestRaceDetectorFindsMissingWaits runs the pipeline without one of its waits in a process
// of its own, which the race detector must end with a report.
func TestRaceDetectorFindsMissingWaits(t *testing.T) {
	if skip, _ := strconv.Atoi(os.Getenv("MTC_TEST_SKIP_WAIT")); skip > 0 {
		pipeline(t, open(t, Options{Threads: 3}), skip)
		return
	}
	if !raceOn {
		t.Skip("needs -race")
	}
	for skip := 1; skip <= 4; skip++ {
		cmd := exec.Command(os.Args[0], "-test.run=^TestRaceDetectorFindsMissingWaits$")
		cmd.Env = append(os.Environ(), "MTC_TEST_SKIP_WAIT="+strconv.Itoa(skip))
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "DATA RACE") {
			t.Errorf("nothing found without wait %d: %v\n%s", skip, err, out)
		}
	}
}

// TestWaitMeansLatestRecord: a wait holds for the record enqueued before it, neither for an
// older one nor for one to come.
func TestWaitMeansLatestRecord(t *testing.T) {
	d := open(t, Options{Threads: 1})
	e := d.NewEvent()
	gate, second := make(chan int), make(chan int)
	var order []int
	note := func(i int, before chan int) *device.Kernel {
		return &device.Kernel{Name: "note", CPU: func(device.CPU, *device.Args) {
			if before != nil {
				<-before
			}
			order = append(order, i)
		}}
	}
	a, b := d.Queue(device.Compute), d.Queue(device.Host)
	b.Wait(e) // never recorded: does nothing
	a.Record(e)
	a.Launch(note(1, gate), device.Args{})
	a.Record(e)
	b.Wait(e) // the second record
	b.Launch(note(2, nil), device.Args{})
	f := d.NewEvent()
	b.Record(f)
	a.Launch(note(3, second), device.Args{})
	a.Record(e) // not what b waits for
	close(gate)
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	close(second)
	if err := e.Sync(); err != nil {
		t.Fatal(err)
	}
	if len(order) != 3 || order[0] != 1 || order[1] != 2 || order[2] != 3 {
		t.Fatalf("order %v", order)
	}
}

// TestFailure: each way to fail names the kernel, lane and task; later commands are skipped;
// nobody hangs.
func TestFailure(t *testing.T) {
	wide := func(n int64) *device.Kernel {
		return &device.Kernel{Name: "read", CPU: func(c device.CPU, a *device.Args) { c.F32(a.P[0], n) }}
	}
	cases := []struct {
		name   string
		kernel *device.Kernel
		off    int64
		want   string
	}{
		{"panic", &device.Kernel{Name: "boom", CPU: func(device.CPU, *device.Args) { panic("bad row 7") }}, 0, "boom on lane compute: bad row 7"},
		{"panic in a worker", &device.Kernel{Name: "wide", CPU: func(c device.CPU, _ *device.Args) {
			c.Parallel(64, 1, func(lo, hi int64) {
				if hi == 64 {
					panic(errors.New("last range"))
				}
			})
		}}, 0, "wide on lane compute: last range"},
		{"no code", &device.Kernel{Name: "gpu"}, 0, "gpu on lane compute: no CPU code"},
		{"behind the end", wide(3), 0, "read on lane compute: 12 bytes at offset 0 are outside arena 1 (device), which has 8"},
		{"before the start", wide(1), -4, "4 bytes at offset -4"},
		{"negative length", wide(-1), 0, "-1 elements"},
		{"overflow", wide(1 << 61), 0, "elements"},
		{"misaligned", wide(1), 2, "not a multiple of 4"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := NewWith(Options{Threads: 2})
			p := alloc(t, d, 8)
			q := d.Queue(device.Compute)
			q.(device.Tagger).Tag(42)
			q.Launch(c.kernel, device.Args{P: [device.MaxPtrs]device.Ptr{p.At(c.off)}})
			e := d.NewEvent()
			q.Record(e)
			err := e.Sync()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			var f *device.Failure
			if !errors.As(err, &f) || f.Tag != 42 || len(f.Stack) == 0 {
				t.Errorf("failure lacks tag or stack: %+v", f)
			}
			var ran atomic.Bool
			h := d.Queue(device.Host)
			h.Wait(e)
			h.Launch(&device.Kernel{Name: "later", CPU: func(device.CPU, *device.Args) { ran.Store(true) }}, device.Args{})
			if err2 := d.Sync(); err2 != err {
				t.Errorf("Sync returned %v, not the first failure", err2)
			}
			if ran.Load() {
				t.Error("a command ran after the failure")
			}
			if err := d.Close(); err == nil {
				t.Error("Close forgot the failure")
			}
		})
	}
}

func TestCopyOutside(t *testing.T) {
	for _, c := range []struct {
		dst, src device.Ptr
		n        int64
		want     string
	}{
		{device.Ptr{Arena: 1}, device.Ptr{Arena: 2}, 9, "source: 9 bytes at offset 0 are outside arena 2"},
		{device.Ptr{Arena: 1, Off: 1}, device.Ptr{Arena: 2}, 8, "target: 8 bytes at offset 1"},
		{device.Ptr{}, device.Ptr{Arena: 2}, 8, "target: 8 bytes at a nil pointer"},
		{device.Ptr{Arena: 9}, device.Ptr{Arena: 2}, 8, "no arena 9"},
	} {
		d := NewWith(Options{Threads: 1})
		alloc(t, d, 8)
		alloc(t, d, 8)
		d.Queue(device.D2H).Copy(c.dst, c.src, c.n)
		if err := d.Sync(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
		d.Close()
	}
}

// TestParallelCovers: every index once, every start a multiple of the grain.
func TestParallelCovers(t *testing.T) {
	for _, threads := range []int{1, 2, 5} {
		p := newPool(threads)
		for _, n := range []int64{1, 2, 7, 64, 1000, 4097} {
			for _, grain := range []int64{0, 1, 3, 16, 5000} {
				chunk := cut(n, grain, threads)
				for name, run := range map[string]func(func(lo, hi int64)){
					"pool": func(f func(lo, hi int64)) { p.do(n, chunk, f) },
					"fork": func(f func(lo, hi int64)) { fork(n, chunk, threads, f) },
				} {
					hits := make([]int32, n)
					run(func(lo, hi int64) {
						if lo%max(grain, 1) != 0 {
							t.Errorf("%s: range starts at %d with grain %d", name, lo, grain)
						}
						for i := lo; i < hi; i++ {
							atomic.AddInt32(&hits[i], 1)
						}
					})
					for i, h := range hits {
						if h != 1 {
							t.Fatalf("%s: threads %d n %d grain %d: index %d done %d times", name, threads, n, grain, i, h)
						}
					}
				}
			}
		}
		p.close()
	}
}

// TestPoolSharedByLanes: many calls at once on one pool, also nested, all finish.
func TestPoolSharedByLanes(t *testing.T) {
	p := newPool(3)
	defer p.close()
	var total atomic.Int64
	done := make(chan int)
	for range 4 {
		go func() {
			for range 300 {
				p.do(64, 4, func(lo, hi int64) {
					if lo == 0 {
						p.do(8, 1, func(lo, hi int64) { total.Add(hi - lo) })
					}
					total.Add(hi - lo)
				})
			}
			done <- 1
		}()
	}
	for range 4 {
		<-done
	}
	if got := total.Load(); got != 4*300*72 {
		t.Fatalf("did %d items, want %d", got, 4*300*72)
	}
}

func TestCommandsAllocateNothing(t *testing.T) {
	if raceOn {
		t.Skip("the race detector allocates")
	}
	d := open(t, Options{Threads: 2})
	p := alloc(t, d, 1<<12)
	e := d.NewEvent()
	q, h := d.Queue(device.Compute), d.Queue(device.Host)
	k := &device.Kernel{Name: "nop", CPU: func(device.CPU, *device.Args) {}}
	if n := testing.AllocsPerRun(100, func() {
		q.Launch(k, device.Args{})
		q.Copy(p, p.At(2048), 64)
		q.Record(e)
		h.Wait(e)
		h.Launch(k, device.Args{})
		if err := e.Sync(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestRingIsBounded: a lane that is far behind holds the caller up, and nothing is lost.
func TestRingIsBounded(t *testing.T) {
	d := open(t, Options{Threads: 1})
	gate := make(chan int)
	var n, sent atomic.Int64
	slow := &device.Kernel{Name: "slow", CPU: func(device.CPU, *device.Args) { <-gate; n.Add(1) }}
	finished := make(chan int)
	go func() {
		for range 3 * ringSize {
			d.Queue(device.Compute).Launch(slow, device.Args{})
			sent.Add(1)
		}
		close(finished)
	}()
	for sent.Load() < ringSize {
		runtime.Gosched()
	}
	time.Sleep(2 * time.Millisecond)
	if s := sent.Load(); s > ringSize+1 {
		t.Errorf("%d commands were taken by a lane that ran none", s)
	}
	close(gate)
	<-finished
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	if n.Load() != 3*ringSize {
		t.Errorf("ran %d", n.Load())
	}
}

func TestAlloc(t *testing.T) {
	d := open(t, Options{Threads: 1, Limit: 1000})
	p := alloc(t, d, 600)
	if b := d.View(p, 600); uintptr(unsafe.Pointer(&b[0]))%Align != 0 {
		t.Error("not aligned")
	}
	_, err := d.Alloc(device.HostMemory, 401)
	var m *device.MemoryError
	if !errors.As(err, &m) || m.Want != 401 || m.Have != 400 || m.Memory != device.HostMemory {
		t.Errorf("over the limit: %v", err)
	}
	alloc(t, d, 400)
	if d.View(p, 601) != nil || d.View(device.Ptr{}, 1) != nil {
		t.Error("View outside of memory")
	}
	if _, err := open(t, Options{}).Alloc(device.HostMemory, 1<<62); !errors.As(err, &m) {
		t.Errorf("absurd size: %v", err)
	}
	if err := d.Write(p.At(596), []byte("12345")); err == nil {
		t.Error("Write behind the end")
	}
	if d.F32(device.Ptr{}, 3) != nil {
		t.Error("nil pointer is not a nil slice")
	}
}
