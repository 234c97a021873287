package cpu

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/megatrain/mtc/runtime/device"
)

// ringSize is how many commands a lane may be behind the engine; then enqueuing blocks.
const ringSize = 1024

// command is one entry of a ring, by value.
type command struct {
	do       verb
	tag      int32
	kernel   *device.Kernel
	dst, src device.Ptr
	n        int64
	on       *queue // wait: the queue that records
	seq      uint64 // record, wait: number of the record on its queue
	marks    *marks // mark: of which n is the number
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

// queue is a lane: a ring of commands and the goroutine that runs them.
//
// The ring is a buffered channel, whose entries synchronise one by one. A ring behind a lock
// would order every command of a lane before whatever the engine enqueues next anywhere, and
// so hide missing waits from the race detector.
type queue struct {
	dev   *Device
	lane  device.Lane
	ring  chan command
	ended chan struct{}
	tag   int32

	mu     sync.Mutex // keeps record numbers in ring order; the lane never takes it
	issued uint64     // records enqueued

	done   atomic.Uint64 // records completed
	parkMu sync.Mutex
	park   *sync.Cond // somebody waits for done to grow
	tokens [64]uint64 // addresses for the race detector, one for each recent record
}

func newQueue(d *Device, l device.Lane) *queue {
	q := &queue{dev: d, lane: l, ring: make(chan command, ringSize), ended: make(chan struct{}), tag: -1}
	q.park = sync.NewCond(&q.parkMu)
	go q.run()
	return q
}

// Tag implements device.Tagger. Commands take the tag of the caller that enqueues them.
func (q *queue) Tag(id int) { q.tag = int32(id) }

func (q *queue) Launch(k *device.Kernel, a device.Args) {
	if k != nil && k.Tagged {
		a.I[device.MaxInts-1] = int64(q.tag)
	}
	q.ring <- command{do: launch, tag: q.tag, kernel: k, args: a}
}

func (q *queue) Copy(dst, src device.Ptr, n int64) {
	q.ring <- command{do: copyBytes, tag: q.tag, dst: dst, src: src, n: n}
}

func (q *queue) Record(e device.Event) {
	e.(*event).set(q, q.record())
}

// record enqueues a record and returns its number on this queue.
func (q *queue) record() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.issued++
	q.ring <- command{do: record, seq: q.issued}
	return q.issued
}

func (q *queue) Wait(e device.Event) {
	on, seq := e.(*event).get()
	if on == nil {
		return
	}
	q.ring <- command{do: wait, on: on, seq: seq}
}

// run is the lane's goroutine.
func (q *queue) run() {
	defer close(q.ended)
	var c command
	for c = range q.ring {
		if q.dev.delay != nil {
			q.dev.delay(q.lane)
		}
		switch c.do {
		case launch, copyBytes:
			if q.dev.failure.Load() == nil {
				q.try(&c)
			}
		case record:
			raceRelease(unsafe.Pointer(q.token(c.seq)))
			q.complete(c.seq)
		case wait:
			c.on.await(c.seq)
			raceAcquire(unsafe.Pointer(c.on.token(c.seq)))
		case mark:
			c.marks.note(c.n)
		}
	}
}

// try runs a launch or a copy; a panic becomes the device's failure.
func (q *queue) try(c *command) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		f := &device.Failure{Kernel: "copy", Lane: q.lane, Tag: int(c.tag), Stack: debug.Stack()}
		if c.do == launch {
			f.Kernel = "kernel"
			if c.kernel != nil {
				f.Kernel = c.kernel.Name
			}
		}
		if w, ok := r.(*workerPanic); ok {
			r, f.Stack = w.value, w.stack
		}
		f.Err = asError(r)
		q.dev.failure.CompareAndSwap(nil, f)
	}()
	if c.do == launch {
		if c.kernel.CPU == nil {
			panic(fmt.Errorf("no CPU code for this kernel"))
		}
		c.kernel.CPU(q.dev, &c.args)
		return
	}
	src, err := q.dev.bytes(c.src, c.n)
	if err != nil {
		panic(fmt.Errorf("source: %w", err))
	}
	dst, err := q.dev.bytes(c.dst, c.n)
	if err != nil {
		panic(fmt.Errorf("target: %w", err))
	}
	copy(dst, src)
}

func asError(r any) error {
	if err, ok := r.(error); ok {
		return err
	}
	return fmt.Errorf("%v", r)
}

// complete says that record seq is done. Parking is hidden from the race detector, for which
// the record's own token is the only edge.
func (q *queue) complete(seq uint64) {
	raceDisable()
	q.parkMu.Lock()
	q.done.Store(seq)
	q.parkMu.Unlock()
	q.park.Broadcast()
	raceEnable()
}

// await blocks until record seq is done.
func (q *queue) await(seq uint64) {
	raceDisable()
	if q.done.Load() < seq {
		q.parkMu.Lock()
		for q.done.Load() < seq {
			q.park.Wait()
		}
		q.parkMu.Unlock()
	}
	raceEnable()
}

func (q *queue) token(seq uint64) *uint64 { return &q.tokens[seq%uint64(len(q.tokens))] }

// event is the latest record enqueued for it: a queue and a number on that queue. Queues run
// in order, so that pair says all, however often and on whichever queues it is recorded.
type event struct {
	dev *Device
	mu  sync.Mutex
	on  *queue
	seq uint64
}

// NewEvent makes an event.
func (d *Device) NewEvent() device.Event { return &event{dev: d} }

func (e *event) set(q *queue, seq uint64) {
	e.mu.Lock()
	e.on, e.seq = q, seq
	e.mu.Unlock()
}

func (e *event) get() (*queue, uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.on, e.seq
}

// Sync blocks until the latest record is done.
func (e *event) Sync() error {
	if on, seq := e.get(); on != nil {
		on.await(seq)
		raceAcquire(unsafe.Pointer(on.token(seq)))
	}
	return e.dev.err()
}
