//go:build cuda

package cuda

import (
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
)

// TestKeep: what is kept runs when it is enqueued again, as often as that, in order with what stands
// around it; what cannot be kept is not, and breaks nothing.
func TestKeep(t *testing.T) {
	d := open(t, Options{F32: true})
	q := d.Queue(device.Compute)
	x := alloc(t, d, device.DeviceMemory, 4)
	value := func() float32 {
		t.Helper()
		if err := d.Sync(); err != nil {
			t.Fatal(err)
		}
		var b [4]byte
		if err := d.Read(b[:], x); err != nil {
			t.Fatal(err)
		}
		return asSlice[float32](b[:], 1)[0]
	}
	plus := func(f float32) { q.Launch(add, addArgs(x, x, 1, f)) }
	plus(1)
	again := q.(device.Keeper).Keep(func() { plus(10); plus(10); plus(10) })
	if again == nil {
		t.Fatal("launches are not kept")
	}
	if got := value(); got != 1 {
		t.Errorf("to keep launches runs them: %g", got)
	}
	plus(1)
	for range 2 {
		if !again() {
			t.Error("they are not enqueued")
		}
	}
	plus(1)
	if got := value(); got != 63 {
		t.Errorf("%g, wanted 63", got)
	}
	reports := *add
	reports.Report = func([]byte, *device.Args) error { return nil }
	if q.(device.Keeper).Keep(func() { q.Launch(&reports, addArgs(x, x, 1, 1)) }) != nil {
		t.Error("a launch that reports is kept")
	}
	// Scratch memory that grows is elsewhere than the graph says.
	if err := d.streams[device.Compute].reserve(1 << 30); err != nil {
		t.Fatal(err)
	}
	if again() {
		t.Error("a graph that names old scratch memory is used")
	}
	if got := value(); got != 63 {
		t.Errorf("%g, wanted 63", got)
	}
}

// TestNothingIsKept where it is not wanted, and where the driver does not take it, at once or later:
// what was to be kept is launched all the same.
func TestNothingIsKept(t *testing.T) {
	t.Setenv("MTC_CUDA_GRAPHS", "0")
	if open(t, Options{}).Queue(device.Compute).(device.Keeper).Keeps() {
		t.Error("graphs are on")
	}
	t.Setenv("MTC_CUDA_GRAPHS", "")
	for _, fault := range []string{"nograph", "graphmemory", "graphlate"} {
		t.Run(fault, func(t *testing.T) {
			t.Setenv("MTC_FAKE_CUDA", fault)
			d := open(t, Options{F32: true})
			if !strings.HasPrefix(d.Name(), "fake GPU") {
				t.Skip("on a GPU, which can")
			}
			q, x := d.Queue(device.Compute), alloc(t, d, device.DeviceMemory, 4)
			if !q.(device.Keeper).Keeps() {
				t.Fatal("graphs are off from the start")
			}
			run := func() {
				for range keptLeast {
					q.Launch(add, addArgs(x, x, 1, 1))
				}
			}
			run()
			again := q.(device.Keeper).Keep(run)
			if kept := again != nil; kept != (fault == "graphlate") {
				t.Errorf("kept: %t", kept)
			} else if kept && again() {
				t.Error("a graph that the driver refuses is enqueued")
			}
			if q.(device.Keeper).Keeps() {
				t.Error("graphs are still on")
			}
			run()
			var b [4]byte
			if err := d.Sync(); err != nil {
				t.Fatal(err)
			}
			if err := d.Read(b[:], x); err != nil {
				t.Fatal(err)
			}
			if got := asSlice[float32](b[:], 1)[0]; got != 2*keptLeast {
				t.Errorf("%g, wanted %d", got, 2*keptLeast)
			}
		})
	}
}

// TestFewLaunchesAreNotKept: a graph costs as much as they do.
func TestFewLaunchesAreNotKept(t *testing.T) {
	d := open(t, Options{F32: true})
	q, x := d.Queue(device.Compute), alloc(t, d, device.DeviceMemory, 4)
	q.Launch(add, addArgs(x, x, 1, 1))
	if q.(device.Keeper).Keep(func() { q.Launch(add, addArgs(x, x, 1, 1)) }) != nil {
		t.Error("one launch is kept")
	}
	if !q.(device.Keeper).Keeps() {
		t.Error("graphs are off")
	}
}
