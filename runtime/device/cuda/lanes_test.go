//go:build cuda

package cuda

import (
	"errors"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/fault"
)

// pipeline runs rounds of copy in, add, copy out, add on the host, over four lanes with one
// slot of memory, so that every lane waits for every other.
func pipeline(t testing.TB, d *Device, rounds int) {
	t.Helper()
	const n = 1 << 12
	host, back := alloc(t, d, device.HostMemory, 4*n), alloc(t, d, device.HostMemory, 4*n)
	slot := alloc(t, d, device.DeviceMemory, 4*n)
	in, ran, out, updated := d.NewEvent(), d.NewEvent(), d.NewEvent(), d.NewEvent()
	h2d, comp, d2h, opt := d.Queue(device.H2D), d.Queue(device.Compute), d.Queue(device.D2H), d.Queue(device.Host)
	for range rounds {
		h2d.Wait(updated)
		h2d.Copy(slot, host, 4*n)
		h2d.Record(in)
		comp.Wait(in)
		comp.Launch(add, addArgs(slot, slot, n, 1))
		comp.Record(ran)
		d2h.Wait(ran)
		d2h.Copy(back, slot, 4*n)
		d2h.Record(out)
		opt.Wait(out)
		opt.Launch(add, addArgs(back, host, n, 2))
		opt.Record(updated)
	}
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	for i, v := range asSlice[float32](d.View(host, 4*n), n) {
		if v != float32(3*rounds) {
			t.Fatalf("element %d is %v after %d rounds, want %d", i, v, rounds, 3*rounds)
		}
	}
}

// TestLanes: a chain through all lanes, longer than a stream's ring of events.
func TestLanes(t *testing.T) { pipeline(t, open(t, Options{F32: true}), ringEvents+200) }

// TestPausesChangeNothing: the same with lanes held up at random.
func TestPausesChangeNothing(t *testing.T) {
	for seed := range int64(3) {
		pipeline(t, open(t, Options{F32: true, Jitter: seed + 1}), 150)
	}
}

// TestWithoutWaitsOnMemory: a driver without them, and one that can lock no memory.
func TestWithoutWaitsOnMemory(t *testing.T) {
	if !fake() {
		t.Skip("the stand-in only")
	}
	again(t, "TestLanes", "MTC_FAKE_CUDA=nowait")
	again(t, "TestLanes", "MTC_FAKE_CUDA=nolock")
	again(t, "TestLanes", "MTC_CUDA_WAIT=host")
}

// TestTwoPhases: a source's Next runs after it with the same arguments and scratch.
func TestTwoPhases(t *testing.T) {
	d := open(t, Options{F32: true})
	const n = 1000
	x, y := alloc(t, d, device.DeviceMemory, 4*n), alloc(t, d, device.DeviceMemory, 4)
	sum := &device.Kernel{Name: "test.sum", CUDA: &device.Source{
		Text: testText, Func: "test_partial", Grid: one(256), Work: func(*device.Args) int64 { return 4 },
		Next: &device.Source{Text: testText, Func: "test_total", Grid: one(1)},
	}}
	q := d.Queue(device.Compute)
	q.Launch(add, addArgs(x, x, n, 2))
	q.Launch(sum, addArgs(x, y, n, 0))
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4)
	if err := d.Read(b, y); err != nil {
		t.Fatal(err)
	}
	if got := asSlice[float32](b, 1)[0]; got != 2*n {
		t.Errorf("sum is %v, want %d", got, 2*n)
	}
}

// TestReadAndWrite: both memories, and ranges outside of them.
func TestReadAndWrite(t *testing.T) {
	d := open(t, Options{})
	for _, m := range []device.Memory{device.DeviceMemory, device.HostMemory} {
		p := alloc(t, d, m, 100)
		got := []byte{9, 9, 9}
		if err := d.Read(got, p.At(97)); err != nil || got[0]+got[1]+got[2] != 0 {
			t.Errorf("%s: fresh memory holds %v, %v", m, got, err)
		}
		if err := d.Write(p.At(97), []byte{1, 2, 3}); err != nil {
			t.Error(err)
		}
		if err := d.Read(got, p.At(97)); err != nil || got[2] != 3 {
			t.Errorf("%s: read back %v, %v", m, got, err)
		}
		if err := d.Write(p.At(98), got); err == nil || !strings.Contains(err.Error(), "outside arena") {
			t.Errorf("%s: a write outside gives %v", m, err)
		}
	}
}

// TestSubmittingAllocatesNothing: launches, copies, records and waits make no garbage.
func TestSubmittingAllocatesNothing(t *testing.T) {
	d := open(t, Options{F32: true})
	const n = 64
	x, h := alloc(t, d, device.DeviceMemory, 4*n), alloc(t, d, device.HostMemory, 4*n)
	q, c, host := d.Queue(device.Compute), d.Queue(device.H2D), d.Queue(device.Host)
	ran, done := d.NewEvent(), d.NewEvent()
	onHost := &device.Kernel{Name: "test.host", CPU: func(c device.CPU, a *device.Args) { c.F32(a.P[0], a.I[0])[0]++ }}
	step := func() {
		c.Wait(done)
		c.Copy(x, h, 4*n)
		c.Record(ran)
		q.Wait(ran)
		q.Launch(add, addArgs(x, x, n, 1))
		q.Record(ran)
		host.Wait(ran)
		host.Launch(onHost, addArgs(h, h, n, 1))
		host.Record(done)
		if err := done.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	step()
	if k := testing.AllocsPerRun(100, step); k != 0 {
		t.Errorf("%v allocations a step", k)
	}
}

// TestFailures: the first failure sticks, names what failed, and hangs nobody.
func TestFailures(t *testing.T) {
	noCode := &device.Kernel{Name: "test.nocode"}
	boom := &device.Kernel{Name: "test.boom", CPU: func(device.CPU, *device.Args) { panic("row 3 is bad") }}
	tooWide := &device.Kernel{Name: "test.wide", CUDA: &device.Source{Text: testText, Func: "test_total", Grid: one(2048)}}
	wrong := &device.Kernel{Name: "test.wrong", CUDA: &device.Source{Text: "#include \"mtc.cuh\"\nint x = y;\n", Func: "f", Grid: one(1)}}
	absent := &device.Kernel{Name: "test.absent", CUDA: &device.Source{Text: testText, Func: "test_absent", Grid: one(1)}}
	for _, c := range []struct {
		kernel *device.Kernel
		lane   device.Lane
		want   string
	}{
		{noCode, device.Compute, "test.nocode on lane compute: there is no CUDA code"},
		{boom, device.Host, "test.boom on lane host: row 3 is bad"},
		{tooWide, device.Compute, "test.wide on lane compute: "},
		{wrong, device.Compute, `"y" is undefined`},
		{absent, device.Compute, "has no function test_absent"},
	} {
		d := open(t, Options{F32: true})
		q := d.Queue(c.lane)
		q.(device.Tagger).Tag(17)
		x := alloc(t, d, device.HostMemory, 64)
		e := d.NewEvent()
		q.Launch(c.kernel, device.Args{})
		q.Record(e)
		for l := range device.NumLanes {
			d.Queue(l).Wait(e)
			d.Queue(l).Copy(x, x.At(32), 4)
		}
		err := d.Sync()
		var f *device.Failure
		if !errors.As(err, &f) || f.Tag != 17 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.kernel.Name, err, c.want)
		}
		if again := e.Sync(); again != err {
			t.Errorf("%s: the event gives %v", c.kernel.Name, again)
		}
	}
}

// TestGPUFails: a failure in the GPU is told apart and names the launches before it. It ends
// the context, so it has a process of its own.
func TestGPUFails(t *testing.T) {
	fall := &device.Kernel{Name: "test.fall", CUDA: &device.Source{Text: testText, Func: "test_fault", Grid: one(1)}}
	d := open(t, Options{F32: true})
	if !d.opt.F32 || d.syncAll {
		return
	}
	if testing.Verbose() && strings.Contains(strings.Join(args(), " "), "TestGPUFails") {
		x := alloc(t, d, device.HostMemory, 64)
		e := d.NewEvent()
		d.Queue(device.Compute).Launch(fall, device.Args{})
		d.Queue(device.Compute).Record(e)
		d.Queue(device.Host).Wait(e)
		d.Queue(device.Host).Launch(add, addArgs(x, x, 4, 1))
		err := d.Sync()
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != codeLost || f.ExitCode() != 3 || !strings.Contains(err.Error(), "test.fall") {
			t.Errorf("got %v", err)
		}
		return
	}
	again(t, "TestGPUFails")
}
