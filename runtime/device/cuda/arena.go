//go:build cuda

package cuda

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
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

// Alloc makes an arena of zeroed memory. Host arenas are mapped in huge pages where there are
// any; all cores touch them and register them with the driver while the caller goes on (Settle
// waits for that). The error is a *device.MemoryError
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
	began := time.Now()
	defer func() { d.times.memory += time.Since(began) }()
	if m == device.DeviceMemory {
		err = d.allocDevice(&a)
	} else {
		err = d.allocHost(&a, n+1)
	}
	if err != nil {
		return device.Ptr{}, d.told("the allocation of memory", err)
	}
	d.arenas[n+1] = a
	d.n.Store(n + 1)
	return device.Ptr{Arena: n + 1}, nil
}

func (d *Device) allocDevice(a *arena) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.bind(); err != nil {
		return err
	}
	p, err := cu.MemAlloc(max(a.size, 16))
	if err != nil {
		if codeOf(err) != codeOutOfMemory {
			return called("cuMemAlloc", err)
		}
		free, total := d.Free()
		return &device.MemoryError{Memory: device.DeviceMemory, Want: a.size, Have: free,
			Of: fmt.Sprintf("free memory of %s, which has %d", d.name, total)}
	}
	a.addr = uint64(p)
	if err := cu.MemsetD8(p, 0, max(a.size, 16)); err != nil {
		return called("cuMemsetD8", err)
	}
	return called("cuCtxSynchronize", cu.Synchronize())
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

// cacheDir is where compiled kernels are kept: XDG_CACHE_HOME or what stands for it.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return dir + "/mtc/cuda"
}
