//go:build cuda

package cuda

import (
	"runtime"
	"sync"
	"syscall"

	"gorgonia.org/cu"

	"github.com/megatrain/mtc/runtime/cores"
	"github.com/megatrain/mtc/runtime/device"
)

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
	return d.told("a copy from the GPU", d.transfer(deviceToHost, d.resolve(src), dst))
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
	return d.told("a copy to the GPU", d.transfer(hostToDevice, d.resolve(dst), src))
}

// Copies of Read and Write that are worth it go through two locked buffers, which all cores fill
// and empty: the driver's own way with memory that is not locked is several times slower.
const (
	largeCopy   = 8 << 20
	bounceChunk = 32 << 20
)

// bounce is the two buffers.
type bounce struct {
	mu    sync.Mutex
	tried bool
	mem   []byte // nil: nothing could be locked
	done  [2]cu.Event
}

// open locks the buffers when they are first needed.
func (b *bounce) open(d *Device) {
	if b.tried {
		return
	}
	b.tried = true
	mem, err := syscall.Mmap(-1, 0, 2*bounceChunk, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return
	}
	if d.hostRegister(addressOf(mem), int64(len(mem))) != nil {
		_ = syscall.Munmap(mem)
		return
	}
	for i := range b.done {
		if b.done[i], err = cu.MakeEvent(cu.DisableTiming); err != nil {
			return
		}
	}
	b.mem = mem
}

func (b *bounce) close(d *Device) {
	if b.mem == nil {
		return
	}
	for i := range b.done {
		_ = cu.DestroyEvent(&b.done[i])
	}
	_ = d.hostUnregister(addressOf(b.mem), int64(len(b.mem)))
	_ = syscall.Munmap(b.mem)
	b.mem = nil
}

// transfer copies between the GPU and Go memory and returns when the bytes are there.
func (d *Device) transfer(kind copyKind, dev uint64, host []byte) error {
	if len(host) < largeCopy {
		return d.copyNow(kind, dev, host)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.bind(); err != nil {
		return err
	}
	b := &d.bounce
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open(d)
	if b.mem == nil {
		return d.copyNow(kind, dev, host)
	}
	if kind == hostToDevice {
		return b.send(d, dev, host)
	}
	return b.fetch(d, dev, host)
}

// half is buffer i of the two, n bytes of it.
func (b *bounce) half(i, n int) []byte { return b.mem[i%2*bounceChunk:][:n] }

func (b *bounce) event(i int) eventHandle { return handleOfEvent(b.done[i%2]) }

func (b *bounce) send(d *Device, dev uint64, host []byte) error {
	for i := 0; len(host) > 0; i++ {
		part := b.half(i, min(len(host), bounceChunk))
		if i >= 2 { // its last transfer
			if err := d.syncEvent(b.event(i)); err != nil {
				return err
			}
		}
		copyAll(part, host)
		if err := d.copyAsync(d.copies, hostToDevice, dev, uint64(addressOf(part)), int64(len(part))); err != nil {
			return err
		}
		if err := d.recordNow(d.copies, b.event(i)); err != nil {
			return err
		}
		dev, host = dev+uint64(len(part)), host[len(part):]
	}
	return d.syncStream(d.copies)
}

func (b *bounce) fetch(d *Device, dev uint64, host []byte) error {
	chunks := (len(host) + bounceChunk - 1) / bounceChunk
	piece := func(i int) []byte { return host[i*bounceChunk : min(len(host), (i+1)*bounceChunk)] }
	for i := range chunks + 1 {
		if i < chunks { // the next one is under way while the one before is emptied
			part := b.half(i, len(piece(i)))
			if err := d.copyAsync(d.copies, deviceToHost, uint64(addressOf(part)), dev+uint64(i)*bounceChunk, int64(len(part))); err != nil {
				return err
			}
			if err := d.recordNow(d.copies, b.event(i)); err != nil {
				return err
			}
		}
		if i > 0 {
			if err := d.syncEvent(b.event(i - 1)); err != nil {
				return err
			}
			copyAll(piece(i-1), b.half(i-1, len(piece(i-1))))
		}
	}
	return nil
}

// copyAll copies len(dst) bytes on all cores.
func copyAll(dst, src []byte) {
	cores.Each(int64(len(dst)), 2<<20, func(lo, hi int64) { copy(dst[lo:hi], src[lo:hi]) })
}
