//go:build cuda

package cuda

import (
	"testing"

	"github.com/megatrain/mtc/runtime/device"
)

// TestMarks: points on all four lanes have one origin: along a chain through them they ascend.
func TestMarks(t *testing.T) {
	d := open(t, Options{F32: true})
	const n = 1 << 16
	lanes := []device.Lane{device.H2D, device.H2D, device.Compute, device.Compute, device.D2H, device.D2H, device.Host, device.Host, device.Host}
	m, err := d.Marks(lanes)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	host, back := alloc(t, d, device.HostMemory, 4*n), alloc(t, d, device.HostMemory, 4*n)
	slot := alloc(t, d, device.DeviceMemory, 4*n)
	in, ran, out := d.NewEvent(), d.NewEvent(), d.NewEvent()
	h2d, comp, d2h, opt := d.Queue(device.H2D), d.Queue(device.Compute), d.Queue(device.D2H), d.Queue(device.Host)
	for range 3 { // the last time counts
		m.Set(0)
		h2d.Copy(slot, host, 4*n)
		m.Set(1)
		h2d.Record(in)
		comp.Wait(in)
		m.Set(2)
		comp.Launch(add, addArgs(slot, slot, n, 1))
		m.Set(3)
		comp.Record(ran)
		d2h.Wait(ran)
		m.Set(4)
		d2h.Copy(back, slot, 4*n)
		m.Set(5)
		d2h.Record(out)
		opt.Wait(out)
		m.Set(6)
		opt.Launch(add, addArgs(back, host, n, 2))
		m.Set(7)
		if err := d.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	at, err := m.Read()
	if err != nil {
		t.Fatal(err)
	}
	slack := int64(m.(*marks).within) + 1000 // ns: the clocks of host and GPU are aligned to it
	for i := 1; i < 8; i++ {
		if at[i] < at[i-1]-slack || at[i-1] < 0 {
			t.Errorf("point %d at %d ns, the one before at %d", i, at[i], at[i-1])
		}
	}
	if at[8] != -1 {
		t.Errorf("a point that was never set is at %d", at[8])
	}
}
