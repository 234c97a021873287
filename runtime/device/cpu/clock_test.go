package cpu

import (
	"testing"
	"time"

	"github.com/megatrain/mtc/runtime/device"
)

// TestMarks: points of two lanes have one origin, stand around what was enqueued between them,
// and one that is never set has no time.
func TestMarks(t *testing.T) {
	d := New()
	defer d.Close()
	m, err := d.Marks([]device.Lane{device.Compute, device.Compute, device.Host, device.Host})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	const nap = 3 * time.Millisecond
	sleep := &device.Kernel{Name: "sleep", CPU: func(device.CPU, *device.Args) { time.Sleep(nap) }}
	c, h, done := d.Queue(device.Compute), d.Queue(device.Host), d.NewEvent()
	m.Set(0)
	c.Launch(sleep, device.Args{})
	m.Set(1)
	c.Record(done)
	h.Wait(done)
	m.Set(2)
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	at, err := m.Read()
	if err != nil {
		t.Fatal(err)
	}
	if at[0] < 0 || at[1]-at[0] < int64(nap) || at[2] < at[1] || at[3] != -1 {
		t.Errorf("points at %v ns", at)
	}
}

// BenchmarkMark is what a point in time costs a lane.
func BenchmarkMark(b *testing.B) {
	d := New()
	defer d.Close()
	m, err := d.Marks([]device.Lane{device.Compute})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	for b.Loop() {
		m.Set(0)
	}
	if err := d.Sync(); err != nil {
		b.Fatal(err)
	}
}
