//go:build cuda

package cuda

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/megatrain/mtc/runtime/device"
)

const (
	hugePage = 2 << 20
	// pinChunk is how much one call registers; calls run side by side. A copy that crosses a
	// boundary is cut there.
	pinChunk = 1 << 30
	// touchPiece is how much a core touches at a time. Large shares leave cores idle at the end:
	// with 16 of them, pieces of 64 MiB came to 22 GiB/s and whole chunks to 10 (one H200's host,
	// memory that its system had already). While a piece is touched nobody changes the process's map
	// of memory, which compilers and libraries do hundreds of times: it must take milliseconds also
	// where a virtual machine has yet to be given the memory.
	touchPiece = 8 << 20
)

// registrars is how many threads register memory at a time: the driver takes one lock for parts
// of it.
const registrars = 8

// pending is a host arena that is being touched and registered.
type pending struct {
	arena int32
	slab  []byte
	ok    []bool // by chunk: registered
}

// backing is the work on host arenas that goes on beside the caller.
type backing struct {
	mu    sync.Mutex
	list  []*pending
	work  sync.WaitGroup
	cores chan struct{} // as many as touch memory at a time
	lock  chan struct{} // as many as register
	begun time.Time     // of the first
	ended time.Time     // of the last
}

func newBacking() *backing {
	return &backing{cores: make(chan struct{}, max(1, runtime.GOMAXPROCS(0))), lock: make(chan struct{}, registrars)}
}

func (d *Device) allocHost(a *arena, number int32) error {
	size := (max(a.size, 1) + hugePage - 1) / hugePage * hugePage
	// Nothing is reserved: a system may guess from the memory it has now, and that of a virtual
	// machine can grow.
	const flags = syscall.MAP_PRIVATE | syscall.MAP_ANON | syscall.MAP_NORESERVE
	b, err := syscall.Mmap(-1, 0, int(size+hugePage), syscall.PROT_READ|syscall.PROT_WRITE, flags)
	if err != nil {
		return &device.MemoryError{Memory: device.HostMemory, Want: a.size, Of: err.Error()}
	}
	a.host = b
	skip := int64(-addressOf(b) % hugePage)
	slab := b[skip : skip+size]
	a.addr = uint64(addressOf(slab))
	// A refusal only costs speed.
	_ = syscall.Madvise(slab, madvHugePage)
	d.back(&pending{arena: number, slab: slab, ok: make([]bool, (size+pinChunk-1)/pinChunk)})
	return nil
}

// back starts touching and registering a slab, a chunk at a time.
func (d *Device) back(p *pending) {
	b := d.backing
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.begun.IsZero() {
		b.begun = time.Now()
	}
	b.list = append(b.list, p)
	d.unsettled.Store(true)
	for i := range p.ok {
		lo := int64(i) * pinChunk
		chunk := p.slab[lo:min(lo+pinChunk, int64(len(p.slab)))]
		b.work.Go(func() {
			b.touch(chunk)
			b.lock <- struct{}{}
			p.ok[i] = d.hostRegister(addressOf(chunk), int64(len(chunk))) == nil
			<-b.lock
			b.mu.Lock()
			b.ended = time.Now()
			b.mu.Unlock()
		})
	}
}

// touch touches a chunk on all cores that are free.
func (b *backing) touch(chunk []byte) {
	var pieces sync.WaitGroup
	for len(chunk) > 0 {
		piece := chunk[:min(touchPiece, len(chunk))]
		chunk = chunk[len(piece):]
		pieces.Go(func() {
			b.cores <- struct{}{}
			touch(piece)
			<-b.cores
		})
	}
	pieces.Wait()
}

// touch makes the system back memory. Who writes there meanwhile loses nothing: where the kernel
// cannot be asked, a word of each page is added to, with zero and in one go.
func touch(b []byte) {
	if syscall.Madvise(b, madvPopulateWrite) == nil {
		return
	}
	page := os.Getpagesize()
	for at := 0; at < len(b); at += page {
		atomic.AddUint32((*uint32)(unsafe.Pointer(&b[at])), 0)
	}
}

// Settle waits until all host arenas are touched and, as far as may be, locked, and ends what Warm
// began. What is not locked goes through rings.
func (d *Device) Settle() error {
	if !d.unsettled.Load() {
		return nil
	}
	b := d.backing
	b.work.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	var err error
	for _, p := range b.list {
		a := &d.arenas[p.arena]
		a.pinned = d.prefix(p)
		if a.pinned < a.size && err == nil {
			err = d.startRings(a)
		}
	}
	b.list = nil
	if err == nil {
		err = d.warmed()
	}
	d.unsettled.Store(err != nil)
	return d.told("the preparation of kernels and products", err)
}

// prefix is how many bytes from the start of a slab are registered; chunks behind the first one
// that is not are given back.
func (d *Device) prefix(p *pending) int64 {
	n := int64(len(p.slab))
	for i, done := range p.ok {
		if done {
			continue
		}
		for j := i; j < len(p.ok); j++ {
			if p.ok[j] {
				at := int64(j) * pinChunk
				_ = d.hostUnregister(addressOf(p.slab)+uintptr(at), min(pinChunk, n-at))
			}
		}
		return int64(i) * pinChunk
	}
	return n
}

// startRings gives the lanes of copies what they need for host memory that is not locked. When
// the arena has taken all that may be locked, it gives some back.
func (d *Device) startRings(a *arena) error {
	for _, l := range []device.Lane{device.H2D, device.D2H} {
		s := d.streams[l]
		for s.ring == nil {
			var err error
			least := int64(ringLeastChunk)
			if a.pinned == 0 {
				// The smallest slots that can be had are better than none.
				s.ring, err = newRing(s, ringChunk, least)
			} else if s.ring, err = newRing(s, ringChunk, ringChunk); err == nil && s.ring == nil {
				last := (a.pinned - 1) / pinChunk * pinChunk
				_ = d.hostUnregister(uintptr(a.addr)+uintptr(last), min(pinChunk, a.pinned-last))
				a.pinned = last
				continue
			}
			if err != nil {
				return err
			}
			break
		}
	}
	return nil
}

const (
	madvHugePage      = 14
	madvPopulateWrite = 23
)

// Unpinned is how many bytes of host arenas could not be locked in memory.
func (d *Device) Unpinned() int64 {
	_ = d.Settle()
	var n int64
	for i := range d.n.Load() + 1 {
		if a := &d.arenas[i]; a.host != nil && a.pinned < a.size {
			n += a.size - a.pinned
		}
	}
	return n
}
