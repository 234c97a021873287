// Package null is a device that does no work. It counts commands and checks what can be seen
// without running them: that addresses lie in arenas, and, when asked, that copies are
// ordered with everything else that touches the same bytes (order.go). Host arenas have
// memory, so that the engine can write its blocks; device arenas have none.
//
// A fault becomes the device's failure, which Sync returns as on any device.
package null

import (
	"fmt"

	"github.com/megatrain/mtc/runtime/device"
)

// Device counts commands.
type Device struct {
	Launches, Copies, Bytes, Records, Waits int64 // Bytes: copied
	// Unrecorded counts waits for events that no queue had recorded; they hold nobody up.
	Unrecorded int64

	arenas  []arena
	queues  [device.NumLanes]queue
	order   *order // nil: not checked
	failure *device.Failure
}

type arena struct {
	memory device.Memory
	bytes  int64
	data   []byte // host arenas
}

// New makes a device that checks addresses. Commands allocate nothing.
func New() *Device {
	d := &Device{}
	for l := range d.queues {
		d.queues[l] = queue{dev: d, lane: device.Lane(l), tag: -1}
	}
	return d
}

// NewChecked makes a device that also checks the order of copies.
func NewChecked() *Device {
	d := New()
	d.order = &order{}
	return d
}

// Name implements device.Device.
func (d *Device) Name() string { return "null" }

// Alloc notes an arena.
func (d *Device) Alloc(m device.Memory, bytes int64) (device.Ptr, error) {
	if bytes < 0 {
		return device.Ptr{}, &device.MemoryError{Memory: m, Want: bytes}
	}
	a := arena{memory: m, bytes: bytes}
	if m == device.HostMemory {
		a.data = make([]byte, bytes)
	}
	d.arenas = append(d.arenas, a)
	return device.Ptr{Arena: int32(len(d.arenas))}, nil
}

// Queue implements device.Device.
func (d *Device) Queue(l device.Lane) device.Queue { return &d.queues[l] }

// NewEvent implements device.Device.
func (d *Device) NewEvent() device.Event { return &event{dev: d} }

// Sync returns the first failure.
func (d *Device) Sync() error {
	if d.order != nil {
		d.order.syncAll()
	}
	return d.err()
}

func (d *Device) err() error {
	if d.failure == nil {
		return nil
	}
	return d.failure
}

// Read gives zeros for device memory.
func (d *Device) Read(dst []byte, src device.Ptr) error {
	if err := d.check(src, int64(len(dst))); err != nil {
		return err
	}
	clear(dst)
	if data := d.arenas[src.Arena-1].data; data != nil {
		copy(dst, data[src.Off:])
	}
	return nil
}

// Write drops what goes to device memory.
func (d *Device) Write(dst device.Ptr, src []byte) error {
	if err := d.check(dst, int64(len(src))); err != nil {
		return err
	}
	if data := d.arenas[dst.Arena-1].data; data != nil {
		copy(data[dst.Off:], src)
	}
	return nil
}

// View is nil for device memory.
func (d *Device) View(p device.Ptr, n int64) []byte {
	if d.check(p, n) != nil || d.arenas[p.Arena-1].data == nil {
		return nil
	}
	return d.arenas[p.Arena-1].data[p.Off : p.Off+n : p.Off+n]
}

// Close implements device.Device.
func (d *Device) Close() error { return d.err() }

// check says whether n bytes at p are in an arena.
func (d *Device) check(p device.Ptr, n int64) error {
	if p.Arena < 1 || int(p.Arena) > len(d.arenas) {
		return fmt.Errorf("no arena %d", p.Arena)
	}
	if a := &d.arenas[p.Arena-1]; p.Off < 0 || n < 0 || n > a.bytes-p.Off {
		return fmt.Errorf("%d bytes at offset %d are outside arena %d (%s), which has %d", n, p.Off, p.Arena, a.memory, a.bytes)
	}
	return nil
}

// fail keeps the first failure.
func (d *Device) fail(q *queue, kernel string, err error) {
	if d.failure == nil {
		d.failure = &device.Failure{Kernel: kernel, Lane: q.lane, Tag: q.tag, Err: err}
	}
}

type queue struct {
	dev  *Device
	lane device.Lane
	tag  int
}

// Tag implements device.Tagger.
func (q *queue) Tag(id int) { q.tag = id }

func (q *queue) Launch(k *device.Kernel, a device.Args) {
	q.dev.Launches++
	for i := range a.P {
		if a.P[i].Nil() {
			continue
		}
		if err := q.dev.check(a.P[i], 0); err != nil {
			q.dev.fail(q, k.Name, err)
		} else if q.dev.order != nil {
			q.dev.order.touch(q, k.Name, a.P[i])
		}
	}
}

func (q *queue) Copy(dst, src device.Ptr, n int64) {
	q.dev.Copies++
	q.dev.Bytes += n
	for _, p := range [2]device.Ptr{src, dst} {
		if err := q.dev.check(p, n); err != nil {
			q.dev.fail(q, "copy", err)
			return
		}
	}
	if q.dev.order != nil {
		q.dev.order.copy(q, dst, src, n)
	}
}

func (q *queue) Record(e device.Event) {
	q.dev.Records++
	ev := e.(*event)
	ev.recorded = true
	if q.dev.order != nil {
		ev.clock = q.dev.order.lanes[q.lane]
	}
}

func (q *queue) Wait(e device.Event) {
	q.dev.Waits++
	ev := e.(*event)
	if !ev.recorded {
		q.dev.Unrecorded++
	}
	if q.dev.order != nil {
		q.dev.order.lanes[q.lane].join(ev.clock)
	}
}

type event struct {
	dev      *Device
	recorded bool
	clock    clock
}

// Sync returns the first failure.
func (e *event) Sync() error {
	if e.dev.order != nil {
		e.dev.order.host(e.clock)
	}
	return e.dev.err()
}
