//go:build cuda

package cuda

import (
	"strings"
	"testing"
	"time"

	"github.com/megatrain/mtc/runtime/device"
)

// TestKernelThatDoesNotCompile: kernels are made beside the caller, so that it hears of one that does not
// compile where it waits; what the lanes had to do is then done, and nothing runs any more.
func TestKernelThatDoesNotCompile(t *testing.T) {
	d := open(t, Options{F32: true})
	x := alloc(t, d, device.DeviceMemory, 4)
	s := d.streams[device.Compute]
	const nap = 100 * time.Millisecond
	began := time.Now() // before the lane begins, for however long this waits for a processor
	if err := s.launch(&pause, &device.Args{I: [device.MaxInts]int64{int64(nap)}}); err != nil {
		t.Fatal(err)
	}
	bad := device.Kernel{Name: "bad", CUDA: &device.Source{Text: "nonsense", Func: "bad",
		Grid: func(*device.Args) device.Grid { return device.Grid{X: 1, Threads: 1} }}}
	if err := d.Warm(func(q device.Queue) { q.Launch(&bad, device.Args{}) }); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Sync(); err == nil || !strings.Contains(err.Error(), "does not compile") {
			t.Errorf("Sync says %v", err)
		}
	}
	if took := time.Since(began); took < nap {
		t.Errorf("Sync waited %v for a lane that takes %v", took, nap)
	}
	s.Launch(add, addArgs(x, x, 1, 1))
	var b [4]byte
	if err := d.Read(b[:], x); err != nil {
		t.Fatal(err)
	}
	if got := asSlice[float32](b[:], 1)[0]; got != 0 {
		t.Errorf("a launch ran: %g", got)
	}
}

// TestWarmedKernelsRun, and the device says how long it took to make them.
func TestWarmedKernelsRun(t *testing.T) {
	d := open(t, Options{F32: true})
	q, x := d.Queue(device.Compute), alloc(t, d, device.DeviceMemory, 4)
	for range 2 { // a device may be warmed again
		if err := d.Warm(func(q device.Queue) { q.Launch(add, addArgs(x, x, 1, 1)) }); err != nil {
			t.Fatal(err)
		}
	}
	q.Launch(add, addArgs(x, x, 1, 1))
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	var b [4]byte
	if err := d.Read(b[:], x); err != nil {
		t.Fatal(err)
	}
	if got := asSlice[float32](b[:], 1)[0]; got != 1 {
		t.Errorf("%g, wanted 1: what is noted does not run, what is launched does", got)
	}
	if d.times.kernels <= 0 {
		t.Error("kernels took no time")
	}
}
