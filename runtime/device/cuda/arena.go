//go:build cuda

package cuda

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/megatrain/mtc/runtime/device"
)

// arena is an allocation.
type arena struct {
	memory device.Memory
	addr   uint64 // of the first byte: the GPU's address, or the host's, which the GPU shares
	size   int64
	host   []byte // of a host arena, as mapped
	pinned int64  // bytes from the start that are registered
}

const (
	hugePage = 2 << 20
	// pinChunk is how much one call registers; calls run side by side. A copy that crosses a
	// boundary is cut there.
	pinChunk = 1 << 30
)

// Alloc makes an arena of zeroed memory. Host arenas are mapped in huge pages where there are
// any, touched by all cores and registered with the driver. The error is a *device.MemoryError
// when memory is short.
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
	}
	a := arena{memory: m, size: bytes}
	var err error
	if m == device.DeviceMemory {
		err = d.allocDevice(&a)
	} else {
		err = d.allocHost(&a)
	}
	if err != nil {
		return device.Ptr{}, err
	}
	d.arenas[n+1] = a
	d.n.Store(n + 1)
	return device.Ptr{Arena: n + 1}, nil
}

func (d *Device) allocDevice(a *arena) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.bind(); err != nil {
		return cannotUse(d.name, err)
	}
	p, err := cu.MemAlloc(max(a.size, 16))
	if err != nil {
		if codeOf(err) != codeOutOfMemory {
			return cannotUse(d.name, err)
		}
		free, total := d.Free()
		return &device.MemoryError{Memory: device.DeviceMemory, Want: a.size, Have: free,
			Of: fmt.Sprintf("free memory of %s, which has %d", d.name, total)}
	}
	a.addr = uint64(p)
	if err := cu.MemsetD8(p, 0, max(a.size, 16)); err != nil {
		return cannotUse(d.name, err)
	}
	return cu.Synchronize()
}

func (d *Device) allocHost(a *arena) error {
	size := (max(a.size, 1) + hugePage - 1) / hugePage * hugePage
	// Nothing is reserved: a system may guess from the memory it has now, and that of a virtual
	// machine can grow. All is touched at once.
	const flags = syscall.MAP_PRIVATE | syscall.MAP_ANON | syscall.MAP_NORESERVE
	b, err := syscall.Mmap(-1, 0, int(size+hugePage), syscall.PROT_READ|syscall.PROT_WRITE, flags)
	if err != nil {
		return &device.MemoryError{Memory: device.HostMemory, Want: a.size, Of: err.Error()}
	}
	a.host = b
	skip := int64(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % hugePage)
	slab := b[skip : skip+size]
	a.addr = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(slab))))
	// A refusal only costs speed.
	_ = syscall.Madvise(slab, madvHugePage)
	touch(slab)
	a.pinned = d.pin(slab)
	if a.pinned < a.size {
		return d.startRings(a)
	}
	return nil
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
				return cannotUse(d.name, err)
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

// touch makes the system back a mapping with memory, on all cores.
func touch(slab []byte) {
	const stripe = 64 << 20
	stripes(int64(len(slab)), stripe, runtime.GOMAXPROCS(0), func(lo, hi int64) {
		if syscall.Madvise(slab[lo:hi], madvPopulateWrite) == nil {
			return
		}
		for i := lo; i < hi; i += 4096 { // an older kernel
			slab[i] = 0
		}
	})
}

// stripes calls body for [0, n) in pieces on up to workers goroutines.
func stripes(n, size int64, workers int, body func(lo, hi int64)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(int64(workers), (n+size-1)/size) {
		wg.Go(func() {
			for {
				lo := next.Add(size) - size
				if lo >= n {
					return
				}
				body(lo, min(lo+size, n))
			}
		})
	}
	wg.Wait()
}

// pin registers a slab with the driver and returns how many bytes from its start are: less
// than all when the process may lock no more. Copies of the rest go through a ring.
func (d *Device) pin(slab []byte) int64 {
	n := int64(len(slab))
	base := uintptr(unsafe.Pointer(unsafe.SliceData(slab)))
	ok := make([]bool, (n+pinChunk-1)/pinChunk)
	stripes(n, pinChunk, min(8, runtime.GOMAXPROCS(0)), func(lo, hi int64) {
		ok[lo/pinChunk] = d.hostRegister(base+uintptr(lo), hi-lo) == nil
	})
	for i, done := range ok {
		if !done {
			for j := i; j < len(ok); j++ { // keep a prefix
				if ok[j] {
					at := int64(j) * pinChunk
					_ = d.hostUnregister(base+uintptr(at), min(pinChunk, n-at))
				}
			}
			return min(n, int64(i)*pinChunk)
		}
	}
	return n
}

// Unpinned is how many bytes of host arenas could not be locked in memory.
func (d *Device) Unpinned() int64 {
	var n int64
	for i := range d.n.Load() + 1 {
		if a := &d.arenas[i]; a.host != nil && a.pinned < a.size {
			n += a.size - a.pinned
		}
	}
	return n
}

func (a *arena) release(d *Device) {
	if a.host != nil {
		for off := int64(0); off < a.pinned; off += pinChunk {
			_ = d.hostUnregister(uintptr(a.addr)+uintptr(off), min(pinChunk, a.pinned-off))
		}
		_ = syscall.Munmap(a.host)
	} else if a.addr != 0 {
		_ = cu.MemFree(cu.DevicePtr(a.addr))
	}
	*a = arena{}
}

// resolve is the address at p; nil is 0.
func (d *Device) resolve(p device.Ptr) uint64 {
	if p.Arena == 0 {
		return 0
	}
	a := &d.arenas[p.Arena&(maxArenas-1)]
	if uint64(p.Off) > uint64(a.size) {
		panic(&rangeError{p: p, size: a.size, kind: a.memory})
	}
	return a.addr + uint64(p.Off)
}

// find returns the arena of n bytes at p.
func (d *Device) find(p device.Ptr, n int64) (*arena, error) {
	if p.Arena <= 0 || p.Arena > d.n.Load() {
		return nil, &rangeError{p: p, n: n, size: -1}
	}
	a := &d.arenas[p.Arena]
	if p.Off < 0 || n < 0 || n > a.size-p.Off {
		return nil, &rangeError{p: p, n: n, size: a.size, kind: a.memory}
	}
	return a, nil
}

// bytes returns n bytes at p of a host arena.
func (d *Device) bytes(p device.Ptr, n int64) ([]byte, error) {
	a, err := d.find(p, n)
	if err != nil {
		return nil, err
	}
	if a.host == nil {
		return nil, fmt.Errorf("arena %d is memory of the GPU, which the host lane cannot reach", p.Arena)
	}
	skip := int64(a.addr) - int64(uintptr(unsafe.Pointer(unsafe.SliceData(a.host))))
	return a.host[skip+p.Off : skip+p.Off+n : skip+p.Off+n], nil
}

// View returns the bytes at p of a host arena, nil for the GPU's memory.
func (d *Device) View(p device.Ptr, n int64) []byte {
	b, err := d.bytes(p, n)
	if err != nil {
		return nil
	}
	return b
}

// Read copies from an arena.
func (d *Device) Read(dst []byte, src device.Ptr) error {
	a, err := d.find(src, int64(len(dst)))
	switch {
	case err != nil:
		return err
	case a.host != nil:
		b, err := d.bytes(src, int64(len(dst)))
		copy(dst, b)
		return err
	}
	return d.copyNow(deviceToHost, d.resolve(src), dst)
}

// Write copies into an arena.
func (d *Device) Write(dst device.Ptr, src []byte) error {
	a, err := d.find(dst, int64(len(src)))
	switch {
	case err != nil:
		return err
	case a.host != nil:
		b, err := d.bytes(dst, int64(len(src)))
		copy(b, src)
		return err
	}
	return d.copyNow(hostToDevice, d.resolve(dst), src)
}

// cacheDir is where compiled kernels are kept: XDG_CACHE_HOME or what stands for it.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return dir + "/mtc/cuda"
}
