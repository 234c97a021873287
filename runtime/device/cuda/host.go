//go:build cuda

package cuda

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/megatrain/mtc/runtime/device"
)

// ringSize is how many commands the host lane may be behind; then enqueuing blocks.
const ringSize = 1024

// command is one entry of the host lane's ring, by value.
type command struct {
	do       verb
	tag      int32
	kernel   *device.Kernel
	dst, src device.Ptr
	n        int64
	on       *stream // wait: the stream that records
	seq      uint64  // record: its number; wait: the number of the record on its stream
	marks    *marks  // mark: of which n is the number
	args     device.Args
}

type verb uint8

const (
	launch verb = iota
	copyBytes
	record
	wait
	mark
)

// hostLane runs CPU kernels on host arenas, in order, on a goroutine of its own.
type hostLane struct {
	dev   *Device
	ring  chan command
	ended chan struct{}
	tag   int32

	issued uint64 // records enqueued
	waits  uint64 // waits for streams enqueued

	done   atomic.Uint64 // records completed
	waited atomic.Uint64 // waits for streams completed
	parkMu sync.Mutex
	park   *sync.Cond // somebody waits for done or waited to grow

	page      []byte  // pinned: the counter
	counter   *uint32 // done, for streams to wait on
	counterAt uint64  // its address on the GPU
}

var (
	_ device.Tagger = (*hostLane)(nil)
	_ device.CPU    = (*hostLane)(nil)
)

func newHostLane(d *Device) (*hostLane, error) {
	h := &hostLane{dev: d, ring: make(chan command, ringSize), ended: make(chan struct{}), tag: -1}
	h.park = sync.NewCond(&h.parkMu)
	var err error
	h.page, err = syscall.Mmap(-1, 0, syscall.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return nil, err
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(h.page)))
	h.counter = (*uint32)(unsafe.Pointer(unsafe.SliceData(h.page)))
	if err := d.hostRegister(at, int64(len(h.page))); err != nil {
		d.noWaits = true // nothing can be locked: the submitter waits
	} else if h.counterAt, err = d.hostDevicePtr(at); err != nil {
		return nil, err
	}
	go h.run()
	return h, nil
}

func (h *hostLane) close() {
	close(h.ring)
	<-h.ended
	if h.counterAt != 0 {
		_ = h.dev.hostUnregister(addressOf(h.page), int64(len(h.page)))
	}
	_ = syscall.Munmap(h.page)
}

// Tag implements device.Tagger.
func (h *hostLane) Tag(id int) { h.tag = int32(id) }

// Launch enqueues a kernel's CPU code.
func (h *hostLane) Launch(k *device.Kernel, a device.Args) {
	h.ring <- command{do: launch, tag: h.tag, kernel: k, args: a}
}

// Copy enqueues a copy between host arenas.
func (h *hostLane) Copy(dst, src device.Ptr, n int64) {
	h.ring <- command{do: copyBytes, tag: h.tag, dst: dst, src: src, n: n}
}

// Record enqueues the completion of e.
func (h *hostLane) Record(e device.Event) { e.(*event).set(h, h.record()) }

func (h *hostLane) record() uint64 {
	h.issued++
	h.ring <- command{do: record, seq: h.issued}
	return h.issued
}

// Wait makes later commands wait for the latest record of e, which is a ticket of its stream.
func (h *hostLane) Wait(e device.Event) {
	on, seq := e.(*event).get()
	s, ok := on.(*stream)
	if !ok {
		return // its own, or never recorded
	}
	h.waits++
	s.guard[seq%ringEvents] = h.waits
	h.ring <- command{do: wait, on: s, seq: seq}
}

// run is the lane's goroutine.
func (h *hostLane) run() {
	defer close(h.ended)
	var c command
	for c = range h.ring {
		if h.dev.jitter != nil {
			h.dev.jitter.nap()
		}
		switch c.do {
		case launch, copyBytes:
			if h.dev.failure.Load() == nil {
				h.try(&c)
			}
		case record:
			h.complete(&h.done, c.seq)
		case wait:
			if err := c.on.awaitRecord(c.seq); err != nil {
				h.dev.failed(c.on, "", err)
			}
			h.complete(&h.waited, h.waited.Load()+1)
		case mark:
			c.marks.note(c.n)
		}
	}
}

// complete raises a counter and wakes who waits for it. Streams see records in pinned memory:
// what the lane wrote before is visible to the GPU once the count is.
func (h *hostLane) complete(counter *atomic.Uint64, n uint64) {
	h.parkMu.Lock()
	counter.Store(n)
	if counter == &h.done {
		atomic.StoreUint32(h.counter, uint32(n))
	}
	h.parkMu.Unlock()
	h.park.Broadcast()
}

func (h *hostLane) awaitCounter(counter *atomic.Uint64, n uint64) {
	if counter.Load() >= n {
		return
	}
	h.parkMu.Lock()
	for counter.Load() < n {
		h.park.Wait()
	}
	h.parkMu.Unlock()
}

// await blocks until record seq is done.
func (h *hostLane) await(seq uint64) { h.awaitCounter(&h.done, seq) }

// awaitWaits blocks until the lane has passed its n-th wait for a stream.
func (h *hostLane) awaitWaits(n uint64) { h.awaitCounter(&h.waited, n) }

func (h *hostLane) awaitRecord(seq uint64) error {
	h.await(seq)
	return nil
}

// try runs a launch or a copy; a panic becomes the device's failure.
func (h *hostLane) try(c *command) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		f := &device.Failure{Kernel: "copy", Lane: device.Host, Tag: int(c.tag), Stack: debug.Stack()}
		if c.do == launch {
			f.Kernel = c.kernel.Name
		}
		err, ok := r.(error)
		if !ok {
			err = fmt.Errorf("%v", r)
		}
		if _, bug := r.(runtime.Error); !bug && ok {
			f.Stack = nil
		}
		f.Err = err
		h.dev.failure.CompareAndSwap(nil, f)
	}()
	if c.do == launch {
		if c.kernel.CPU == nil {
			panic(fmt.Errorf("no CPU code for this kernel"))
		}
		c.kernel.CPU(h, &c.args)
		return
	}
	dst, src := h.must(c.dst, c.n), h.must(c.src, c.n)
	h.Parallel(c.n, 1<<20, func(lo, hi int64) { copy(dst[lo:hi], src[lo:hi]) })
}

func (h *hostLane) must(p device.Ptr, n int64) []byte {
	b, err := h.dev.bytes(p, n)
	if err != nil {
		panic(err)
	}
	return b
}

// F32 implements device.CPU over host arenas.
func (h *hostLane) F32(p device.Ptr, n int64) []float32 {
	if p.Nil() {
		return nil
	}
	return asSlice[float32](h.must(p, 4*n), n)
}

// I32 implements device.CPU.
func (h *hostLane) I32(p device.Ptr, n int64) []int32 {
	if p.Nil() {
		return nil
	}
	return asSlice[int32](h.must(p, 4*n), n)
}

// F64 implements device.CPU.
func (h *hostLane) F64(p device.Ptr, n int64) []float64 {
	if p.Nil() {
		return nil
	}
	return asSlice[float64](h.must(p, 8*n), n)
}

// Parallel implements device.CPU on the device's threads.
func (h *hostLane) Parallel(n, grain int64, body func(lo, hi int64)) {
	h.dev.pool.Parallel(n, grain, body)
}
