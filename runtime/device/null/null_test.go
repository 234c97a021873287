package null

import (
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
)

var nop = &device.Kernel{Name: "nop"}

func args(p ...device.Ptr) (a device.Args) {
	copy(a.P[:], p)
	return a
}

// TestOrder: each pair of commands on two lanes, with and without what orders them.
func TestOrder(t *testing.T) {
	type side func(q device.Queue, slot, other device.Ptr)
	fill := func(q device.Queue, slot, other device.Ptr) { q.Copy(slot, other, 64) }
	fillPart := func(q device.Queue, slot, other device.Ptr) { q.Copy(slot.At(60), other, 4) }
	drain := func(q device.Queue, slot, other device.Ptr) { q.Copy(other.At(64), slot, 64) }
	use := func(q device.Queue, slot, _ device.Ptr) { q.Launch(nop, args(slot.At(60))) }
	for _, c := range []struct {
		name      string
		one, two  side
		conflicts bool
	}{
		{"fill then use", fill, use, true},
		{"use then fill", use, fill, true},
		{"use then fill of its part", use, fillPart, true},
		{"fill then drain", fill, drain, true},
		{"drain then fill of a part", drain, fillPart, true},
		{"two fills", fill, fill, true},
		{"two uses", use, use, false},
		{"drain and use", drain, use, false},
	} {
		for _, how := range []string{"unordered", "event", "sync of an event", "sync of the device", "old record", "same lane"} {
			d := NewChecked()
			slot, _ := d.Alloc(device.DeviceMemory, 64)
			other, _ := d.Alloc(device.HostMemory, 128)
			third, _ := d.Alloc(device.HostMemory, 128)
			a, b := d.Queue(device.H2D), d.Queue(device.Compute)
			e := d.NewEvent()
			if how == "old record" {
				a.Record(e)
			}
			c.one(a, slot, other)
			switch how {
			case "event":
				a.Record(e)
				b.Wait(e)
			case "sync of an event":
				a.Record(e)
				_ = e.Sync()
			case "sync of the device":
				_ = d.Sync()
			case "old record":
				b.Wait(e)
			case "same lane":
				b = a
			}
			c.two(b, slot, third)
			bad := c.conflicts && (how == "unordered" || how == "old record")
			if err := d.Sync(); (err != nil) != bad {
				t.Errorf("%s, %s: %v", c.name, how, err)
			} else if bad && !strings.Contains(err.Error(), "not ordered after task") {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		do   func(q device.Queue, p device.Ptr)
		want string
	}{
		{func(q device.Queue, p device.Ptr) { q.Launch(nop, args(p.At(9))) }, "nop on lane host: 0 bytes at offset 9"},
		{func(q device.Queue, p device.Ptr) { q.Launch(nop, args(device.Ptr{Arena: 2})) }, "no arena 2"},
		{func(q device.Queue, p device.Ptr) { q.Copy(p.At(4), p, 5) }, "copy on lane host: 5 bytes at offset 4"},
		{func(q device.Queue, p device.Ptr) { q.Copy(p, p.At(-1), 1) }, "offset -1"},
		{func(q device.Queue, p device.Ptr) { q.Launch(nop, args(p, device.Ptr{}, p.At(8))) }, ""},
	} {
		d := New()
		p, _ := d.Alloc(device.DeviceMemory, 8)
		c.do(d.Queue(device.Host), p)
		err := d.Sync()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestUnrecordedWaitsAreCounted(t *testing.T) {
	d := New()
	e := d.NewEvent()
	d.Queue(device.Host).Wait(e)
	d.Queue(device.H2D).Record(e)
	d.Queue(device.Host).Wait(e)
	if d.Unrecorded != 1 || d.Waits != 2 {
		t.Errorf("%d of %d waits unrecorded", d.Unrecorded, d.Waits)
	}
}
