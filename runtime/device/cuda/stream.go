//go:build cuda

package cuda

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/megatrain/mtc/runtime/device"
)

// ringEvents is how many records of a stream can be told apart. A wait for an older one is a
// wait for a newer one.
const ringEvents = 1024

// stream is a lane of the GPU. It is used by one goroutine at a time.
type stream struct {
	dev    *Device
	lane   device.Lane
	cu     cu.Stream
	handle streamHandle
	tag    int32

	seq    uint64 // records enqueued
	events [ringEvents]cu.Event
	guard  [ringEvents]uint64 // the host lane's wait that still needs the event, by number

	trail trail
	ring  *ring // nil: all host memory is locked, or none can be

	args    *block
	call    device.Args // of the launch in hand, which the kernel's functions get the address of
	scratch cu.DevicePtr
	room    int64 // bytes of scratch

	keep  keeping
	kept  []graphHandle
	keptN int // launches in them

	recent [8]*device.Kernel // the last launches, for messages
	at     int
}

var _ device.Tagger = (*stream)(nil)

func newStream(d *Device, l device.Lane) (*stream, error) {
	s := &stream{dev: d, lane: l, tag: -1, args: newBlock()}
	var err error
	if s.cu, err = cu.MakeStream(cu.NonBlocking); err != nil {
		return nil, called("cuStreamCreate", err)
	}
	s.handle = handleOfStream(s.cu)
	flags := cu.DisableTiming
	if runtime.NumCPU() <= 4 {
		flags |= cu.BlockingSyncEvent
	}
	for i := range s.events {
		if s.events[i], err = cu.MakeEvent(flags); err != nil {
			return nil, called("cuEventCreate", err)
		}
	}
	return s, nil
}

func (s *stream) close() {
	if s.ring != nil {
		s.ring.close()
	}
	for i := range s.events {
		_ = cu.DestroyEvent(&s.events[i])
	}
	for _, g := range s.kept {
		freeGraph(g)
	}
	if s.scratch != 0 {
		_ = cu.MemFree(s.scratch)
	}
	_ = s.cu.Destroy()
	s.args.free()
}

// Tag implements device.Tagger.
func (s *stream) Tag(id int) {
	s.tag = int32(id)
	if !s.keep.on {
		s.mark(s.tag)
	}
}

// Launch enqueues a kernel: a matrix product, or CUDA code and what follows it.
func (s *stream) Launch(k *device.Kernel, a device.Args) {
	d := s.dev
	if d.failure.Load() != nil {
		return
	}
	if s.keep.on {
		s.keepLaunch(k, a)
		return
	}
	if !s.settled(k.Name) {
		return
	}
	if d.jitter != nil {
		d.jitter.stall(s)
	}
	if d.failAt > 0 {
		s.mayFail()
	}
	s.recent[s.at&(len(s.recent)-1)] = k
	s.at++
	if k.Tagged {
		a.I[device.MaxInts-1] = int64(s.tag)
	}
	s.call = a
	if err := s.launch(k, &s.call); err != nil {
		d.failed(s, k.Name, err)
		return
	}
	if k.Report != nil {
		if err := s.report(k); err != nil {
			d.failed(s, k.Name, err)
			return
		}
	}
	if d.syncAll {
		if err := d.syncStream(s.handle); err != nil {
			d.failed(s, k.Name, err)
		}
	}
}

// settled makes sure that all is ready for what is enqueued.
func (s *stream) settled(what string) bool {
	if s.dev.unsettled.Load() {
		if err := s.dev.Settle(); err != nil {
			s.dev.failed(s, what, err)
			return false
		}
	}
	return true
}

// keepLaunch is Launch within Keep.
func (s *stream) keepLaunch(k *device.Kernel, a device.Args) {
	switch {
	case s.keep.err != nil:
	case k.Report != nil:
		s.keep.err = errNotKept
	default:
		s.call = a
		s.keep.n++
		s.keep.err = s.launch(k, &s.call)
	}
}

func (s *stream) launch(k *device.Kernel, a *device.Args) (err error) {
	defer func() {
		if r, ok := recover().(*rangeError); ok {
			err = r
		}
	}()
	if k.Matmul != nil {
		if whole, err := s.matmul(k, a); err != nil || whole {
			return err
		}
	}
	return s.launchSource(k, a)
}

// launchSource enqueues a kernel's CUDA code and what follows it.
func (s *stream) launchSource(k *device.Kernel, a *device.Args) error {
	first := k.CUDA.For(s.dev.target, a)
	if first == nil || first.Grid == nil {
		return fmt.Errorf("there is no CUDA code for this kernel")
	}
	b := s.args
	for i := range a.P {
		b.p[i] = s.dev.resolve(a.P[i])
	}
	b.i, b.f = a.I, a.F
	var room int64
	for src := first; src != nil; src = src.Next {
		if src.Work != nil {
			room = max(room, src.Work(a))
		}
	}
	if room > 0 {
		if err := s.reserve(room); err != nil {
			return err
		}
	}
	b.work = uint64(s.scratch)
	for src := first; src != nil; src = src.Next {
		g := src.Grid(a)
		if g.X <= 0 || g.Y < 0 || g.Z < 0 {
			continue // nothing to do
		}
		f, err := s.dev.kernels.get(s.dev, k, src, a, g.Shared)
		if err != nil {
			return err
		}
		if err := s.dev.launchNow(s, f, g.X, max(g.Y, 1), max(g.Z, 1), g.Threads, g.Shared, b); err != nil {
			return err
		}
	}
	return nil
}

// report hands what the launch in hand left in scratch memory to its kernel.
func (s *stream) report(k *device.Kernel) error {
	if err := s.dev.syncStream(s.handle); err != nil {
		return err
	}
	work := make([]byte, device.ReportBytes)
	if err := s.dev.copyNow(deviceToHost, uint64(s.scratch), work); err != nil {
		return err
	}
	return k.Report(work, &s.call)
}

// scratchUnit is what scratch memory grows by.
const scratchUnit = 32 << 20

// reserve makes sure of n bytes of scratch. It grows in a run's first steps, if ever.
func (s *stream) reserve(n int64) error {
	if n <= s.room {
		return nil
	}
	if s.keep.on {
		return errNotKept // memory that a graph names must stay
	}
	d := s.dev
	if err := d.syncStream(s.handle); err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.bind(); err != nil {
		return err
	}
	if s.scratch != 0 {
		if err := cu.MemFree(s.scratch); err != nil {
			return called("cuMemFree", err)
		}
		s.scratch, s.room = 0, 0
	}
	n = (n + scratchUnit - 1) / scratchUnit * scratchUnit
	p, err := cu.MemAlloc(n)
	if codeOf(err) != codeOutOfMemory && err != nil {
		return called("cuMemAlloc", err)
	}
	if err != nil {
		free, total := d.Free()
		return newFault(codeDeviceMemory, "scratch memory of a kernel does not fit: %d bytes wanted, %d of %d free", n, free, total).
			Help("compile with a smaller --micro-batch")
	}
	s.scratch, s.room = p, n
	return nil
}

// Copy enqueues a copy of n bytes, cut where registered host memory is. What is not registered
// goes through the ring.
func (s *stream) Copy(dst, src device.Ptr, n int64) {
	d := s.dev
	if d.failure.Load() != nil || n == 0 {
		return
	}
	if d.jitter != nil {
		d.jitter.stall(s)
	}
	if !s.settled("copy") {
		return
	}
	from, err := d.find(src, n)
	if err != nil {
		d.failed(s, "copy", fmt.Errorf("source: %w", err))
		return
	}
	to, err := d.find(dst, n)
	if err != nil {
		d.failed(s, "copy", fmt.Errorf("target: %w", err))
		return
	}
	kind := copyKinds[from.memory][to.memory]
	for n > 0 {
		a, locked := from.whole(src.Off)
		b, also := to.whole(dst.Off)
		m := min(n, a, b)
		var err error
		staged := !locked || !also
		if staged && s.ring != nil && (kind == hostToDevice || kind == deviceToHost) {
			err = s.ring.copy(kind, to.addr+uint64(dst.Off), from.addr+uint64(src.Off), m)
		} else {
			if staged && kind == hostToDevice {
				// Without a ring the driver reads such memory in the call, before what the copy waits for.
				err = d.syncStream(s.handle)
			}
			if err == nil {
				err = d.copyAsync(s.handle, kind, to.addr+uint64(dst.Off), from.addr+uint64(src.Off), m)
			}
		}
		if err != nil {
			d.failed(s, "copy", err)
			return
		}
		src.Off, dst.Off, n = src.Off+m, dst.Off+m, n-m
	}
}

// copyKinds by memory of the source and of the target.
var copyKinds = [2][2]copyKind{
	device.DeviceMemory: {device.DeviceMemory: deviceToDevice, device.HostMemory: deviceToHost},
	device.HostMemory:   {device.DeviceMemory: hostToDevice, device.HostMemory: hostToHost},
}

// whole is how many bytes from off on are registered together, or not registered.
func (a *arena) whole(off int64) (n int64, locked bool) {
	switch {
	case a.host == nil:
		return a.size - off, true
	case off < a.pinned:
		return min(pinChunk-off%pinChunk, a.pinned-off), true
	}
	return a.size - off, false
}

// Record enqueues the completion of e.
func (s *stream) Record(e device.Event) {
	d := s.dev
	s.seq++
	i := s.seq % ringEvents
	// The host lane may not have come yet to a wait for this event's previous record; it
	// would then wait for what is only enqueued now, which may need the host lane itself.
	if g := s.guard[i]; g != 0 {
		d.host.awaitWaits(g)
		s.guard[i] = 0
	}
	if err := d.recordNow(s.handle, handleOfEvent(s.events[i])); err != nil {
		d.failed(s, "", err)
	}
	e.(*event).set(s, s.seq)
}

// Wait makes later commands of this stream wait for the latest record of e.
func (s *stream) Wait(e device.Event) {
	d := s.dev
	on, seq := e.(*event).get()
	switch on := on.(type) {
	case nil:
	case *stream:
		if on == s {
			return
		}
		if err := d.waitEvent(s.handle, handleOfEvent(on.events[seq%ringEvents])); err != nil {
			d.failed(s, "", err)
		}
	case *hostLane:
		switch {
		case on.done.Load() >= seq:
		case d.noWaits:
			on.await(seq)
		default:
			if err := d.waitValue(s.handle, on.counterAt, uint32(seq)); err != nil {
				d.failed(s, "", err)
			}
		}
	}
}

// last names the latest launches, the newest first.
func (s *stream) last() []string {
	var out []string
	for k := 1; k <= len(s.recent); k++ {
		if r := s.recent[(s.at-k)&(len(s.recent)-1)]; r != nil && s.at >= k {
			out = append(out, r.Name)
		}
	}
	return out
}

// recorder is a lane that an event was recorded on.
type recorder interface{ awaitRecord(seq uint64) error }

// awaitRecord blocks until the record is done on the GPU.
func (s *stream) awaitRecord(seq uint64) error {
	return s.dev.syncEvent(handleOfEvent(s.events[seq%ringEvents]))
}

// ticket is a record: a lane and a number on it.
type ticket struct {
	on  recorder
	seq uint64
}

// event is the latest record enqueued for it. Lanes run in order, so the ticket says all.
type event struct {
	dev  *Device
	last atomic.Pointer[ticket]
	both [2]ticket // the last and a spare, so that a record allocates nothing
	turn int
}

// NewEvent makes an event.
func (d *Device) NewEvent() device.Event { return &event{dev: d} }

func (e *event) set(on recorder, seq uint64) {
	e.turn ^= 1
	e.both[e.turn] = ticket{on, seq}
	e.last.Store(&e.both[e.turn])
}

func (e *event) get() (recorder, uint64) {
	t := e.last.Load()
	if t == nil {
		return nil, 0
	}
	return t.on, t.seq
}

// Sync blocks until the latest record is done.
func (e *event) Sync() error {
	if on, seq := e.get(); on != nil {
		if err := on.awaitRecord(seq); err != nil {
			if s, ok := on.(*stream); ok {
				e.dev.failed(s, "", err)
			}
		}
	}
	return e.dev.err()
}

// asSlice is a view of n elements at the start of b.
func asSlice[E float32 | float64 | int32](b []byte, n int64) []E {
	return unsafe.Slice((*E)(unsafe.Pointer(unsafe.SliceData(b))), n)
}
