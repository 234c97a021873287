// Package cpu is the device that every machine has. Arenas are Go memory, a lane is a
// goroutine that runs a ring of commands, and events order lanes as on a GPU. Nothing is
// ordered by accident: under the race detector the only edges between lanes are the waits
// that were asked for, so `go test -race` finds a missing one.
//
// Both memories (device and host) are ordinary memory in arenas of their own, and a copy
// between them is a copy: a streamed run moves the bytes that it would move on a GPU.
package cpu

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/megatrain/mtc/runtime/device"
)

// Align is the alignment of an arena's first byte: a cache line, and a 512-bit vector.
const Align = 64

// maxArenas bounds the arenas of a device, so that a look-up is one bounds check.
const maxArenas = 1 << 10

// Options of a device. The zero value is New's.
type Options struct {
	// Threads is how many goroutines one Parallel call uses; 0: GOMAXPROCS.
	Threads int
	// Limit is how many bytes all arenas may have together; 0: no limit.
	Limit int64
	// Delay, when set, is called by a lane before each command. Tests sleep in it: results
	// must not depend on when a lane gets to run.
	Delay func(l device.Lane)
}

// Device runs lanes as goroutines.
type Device struct {
	threads int
	limit   int64
	delay   func(device.Lane)
	pool    *pool
	queues  [device.NumLanes]*queue

	mu     sync.Mutex // Alloc and Close
	used   int64
	closed bool
	n      atomic.Int32 // arenas in use
	arenas [maxArenas]arena

	failure atomic.Pointer[device.Failure]
}

type arena struct {
	memory device.Memory
	data   []byte
}

// New makes a device on all the processors that Go uses.
func New() *Device { return NewWith(Options{}) }

// NewWith makes a device with options.
func NewWith(o Options) *Device {
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	d := &Device{threads: o.Threads, limit: o.Limit, delay: o.Delay, pool: newPool(o.Threads)}
	for l := range d.queues {
		d.queues[l] = newQueue(d, device.Lane(l))
	}
	return d
}

// Name says what the device is.
func (d *Device) Name() string { return fmt.Sprintf("cpu (%d threads)", d.threads) }

// Threads is how many goroutines one Parallel call uses.
func (d *Device) Threads() int { return d.threads }

// Alloc makes an arena of zeroed memory that starts on a multiple of Align.
func (d *Device) Alloc(m device.Memory, bytes int64) (device.Ptr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.n.Load()
	switch {
	case d.closed:
		return device.Ptr{}, fmt.Errorf("%s: device is closed", d.Name())
	case bytes < 0:
		return device.Ptr{}, fmt.Errorf("%s: arena of %d bytes", d.Name(), bytes)
	case n+1 >= maxArenas:
		return device.Ptr{}, fmt.Errorf("%s: more than %d arenas", d.Name(), maxArenas-1)
	case d.limit > 0 && bytes > d.limit-d.used:
		return device.Ptr{}, &device.MemoryError{Memory: m, Want: bytes, Have: d.limit - d.used}
	}
	data, err := zeroed(bytes)
	if err != nil {
		return device.Ptr{}, &device.MemoryError{Memory: m, Want: bytes, Have: d.limit - d.used, Of: err.Error()}
	}
	// All pages of a large arena are taken now, by all threads and so near all of them: what a plan counts
	// on is there, or is missing before the first step, and no step pays for it.
	if bytes >= largeArena {
		d.Parallel(bytes, 1<<21, func(lo, hi int64) {
			for ; lo < hi; lo += 4096 {
				data[lo] = 0
			}
		})
	}
	d.used += bytes
	d.arenas[n+1] = arena{m, data}
	d.n.Store(n + 1)
	return device.Ptr{Arena: n + 1}, nil
}

// From how many bytes on an arena has large pages (moments in small ones take half as long again to
// update), and from how many on all are taken at once.
const hugePages, largeArena = 4 << 20, 64 << 20

// zeroed returns n bytes of Go memory on an Align boundary.
func zeroed(n int64) (b []byte, err error) {
	defer func() {
		if r := recover(); r != nil { // makeslice: len out of range
			err = fmt.Errorf("%v", r)
		}
	}()
	b = make([]byte, n+Align)
	if n >= hugePages {
		huge(b)
	}
	skip := int64(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % Align)
	return b[skip : skip+n : skip+n], nil
}

// Queue returns the queue of a lane.
func (d *Device) Queue(l device.Lane) device.Queue { return d.queues[l] }

// Sync waits until every command enqueued before it is done on all lanes.
func (d *Device) Sync() error {
	var seq [device.NumLanes]uint64
	for l, q := range d.queues {
		seq[l] = q.record()
	}
	for l, q := range d.queues {
		q.await(seq[l])
		raceAcquire(unsafe.Pointer(q.token(seq[l])))
	}
	return d.err()
}

func (d *Device) err() error {
	if f := d.failure.Load(); f != nil {
		return f
	}
	return nil
}

// Read copies from an arena.
func (d *Device) Read(dst []byte, src device.Ptr) error {
	b, err := d.bytes(src, int64(len(dst)))
	if err != nil {
		return err
	}
	copy(dst, b)
	return nil
}

// Write copies into an arena.
func (d *Device) Write(dst device.Ptr, src []byte) error {
	b, err := d.bytes(dst, int64(len(src)))
	if err != nil {
		return err
	}
	copy(b, src)
	return nil
}

// View returns the bytes at p, or nil when they are outside the arena.
func (d *Device) View(p device.Ptr, n int64) []byte {
	b, err := d.bytes(p, n)
	if err != nil {
		return nil
	}
	return b
}

// Close ends the lanes once they have done what was enqueued, and drops the memory.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	for _, q := range d.queues {
		close(q.ring)
	}
	for _, q := range d.queues {
		<-q.ended
	}
	d.pool.close()
	for i := range d.arenas {
		d.arenas[i] = arena{}
	}
	return d.err()
}

// bytes returns n bytes at p, or an error that says what is there.
func (d *Device) bytes(p device.Ptr, n int64) ([]byte, error) {
	if p.Arena <= 0 || p.Arena > d.n.Load() {
		return nil, &rangeError{p: p, n: n, size: -1}
	}
	a := &d.arenas[p.Arena]
	if p.Off < 0 || n < 0 || n > int64(len(a.data))-p.Off {
		return nil, &rangeError{p: p, n: n, size: int64(len(a.data)), memory: a.memory}
	}
	return a.data[p.Off : p.Off+n : p.Off+n], nil
}

// rangeError is an access outside of memory.
type rangeError struct {
	p      device.Ptr
	n      int64
	size   int64 // of the arena, -1: no such arena
	memory device.Memory
}

func (e *rangeError) Error() string {
	switch {
	case e.p.Nil():
		return fmt.Sprintf("%d bytes at a nil pointer", e.n)
	case e.size < 0:
		return fmt.Sprintf("no arena %d", e.p.Arena)
	}
	return fmt.Sprintf("%d bytes at offset %d are outside arena %d (%s), which has %d",
		e.n, e.p.Off, e.p.Arena, e.memory, e.size)
}
