//go:build cuda

package cuda

/*
#include <cuda.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { void* dst; const void* src; size_t n; } move_t;

// moved runs on a thread of the driver, in the order of its stream.
static void CUDA_CB moved(void* arg) {
	move_t* m = arg;
	memcpy(m->dst, m->src, m->n);
	free(m);
}

static int host_move(CUstream s, uint64_t dst, uint64_t src, size_t n) {
	move_t* m = malloc(sizeof *m);
	*m = (move_t){(void*)(uintptr_t)dst, (const void*)(uintptr_t)src, n};
	int rc = cuLaunchHostFunc(s, moved, m);
	if (rc) free(m);
	return rc;
}
*/
import "C"

import (
	"runtime"
	"syscall"
	"unsafe"

	"gorgonia.org/cu"
)

// ring carries copies of host memory that is not locked: through a few locked chunks, which a
// second stream fills or empties while the first one copies others. Where nothing at all can be
// locked there is none, and the driver's own buffers do the work, and hold up the submitter.
type ring struct {
	lane  *stream
	mover cu.Stream // runs the moves within the host
	side  streamHandle
	mem   []byte
	chunk int64
	at    int // the next slot

	full, free [ringSlots]cu.Event
	begin      cu.Event
}

const (
	ringSlots = 4
	// Chunks shrink down to the least one until the ring can be locked.
	ringChunk      = 32 << 20
	ringLeastChunk = 64 << 10
)

// newRing locks a ring for a lane, with slots of chunk bytes or, where that cannot be, of less,
// but at least of least; nil when not even that can be locked.
func newRing(s *stream, chunk, least int64) (*ring, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d := s.dev
	if err := d.bind(); err != nil {
		return nil, err
	}
	for ; chunk >= least; chunk /= 2 {
		mem, err := syscall.Mmap(-1, 0, int(ringSlots*chunk), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
		if err != nil {
			return nil, err
		}
		if d.hostRegister(addressOf(mem), int64(len(mem))) != nil {
			_ = syscall.Munmap(mem)
			continue
		}
		r := &ring{lane: s, mem: mem, chunk: chunk}
		if r.mover, err = cu.MakeStream(cu.NonBlocking); err != nil {
			return nil, called("cuStreamCreate", err)
		}
		r.side = handleOfStream(r.mover)
		events := []*cu.Event{&r.begin}
		for i := range ringSlots {
			events = append(events, &r.full[i], &r.free[i])
		}
		for _, e := range events {
			if *e, err = cu.MakeEvent(cu.DisableTiming); err != nil {
				return nil, called("cuEventCreate", err)
			}
		}
		return r, nil
	}
	return nil, nil
}

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func (r *ring) close() {
	d := r.lane.dev
	_ = d.syncStream(r.side)
	_ = r.mover.Destroy()
	_ = cu.DestroyEvent(&r.begin)
	for i := range ringSlots {
		_, _ = cu.DestroyEvent(&r.full[i]), cu.DestroyEvent(&r.free[i])
	}
	_ = d.hostUnregister(addressOf(r.mem), int64(len(r.mem)))
	_ = syscall.Munmap(r.mem)
}

// copy enqueues a copy between the GPU and host memory that is not locked. On the lane's stream
// it begins after what was enqueued before, and what is enqueued after it begins when it is done.
func (r *ring) copy(kind copyKind, dst, src uint64, n int64) error {
	if kind == hostToDevice { // what is read may only be there now
		if err := r.after(r.side, r.lane.handle); err != nil {
			return err
		}
	}
	for n > 0 {
		m := min(n, r.chunk)
		if err := r.carry(kind, dst, src, m); err != nil {
			return err
		}
		dst, src, n = dst+uint64(m), src+uint64(m), n-m
	}
	if kind == deviceToHost {
		return r.after(r.lane.handle, r.side)
	}
	return nil
}

// after makes one stream wait for another.
func (r *ring) after(s, on streamHandle) error {
	d := r.lane.dev
	if err := d.recordNow(on, handleOfEvent(r.begin)); err != nil {
		return err
	}
	return d.waitEvent(s, handleOfEvent(r.begin))
}

// carry copies through the next slot: one stream fills it, the other empties it. A slot that was
// never used has events without a record, for which nothing waits.
func (r *ring) carry(kind copyKind, dst, src uint64, n int64) error {
	d := r.lane.dev
	slot := uint64(addressOf(r.mem)) + uint64(int64(r.at)*r.chunk)
	full, free := handleOfEvent(r.full[r.at]), handleOfEvent(r.free[r.at])
	r.at = (r.at + 1) % ringSlots
	filler, emptier := r.side, r.lane.handle
	if kind == deviceToHost {
		filler, emptier = emptier, filler
	}
	if err := d.waitEvent(filler, free); err != nil {
		return err
	}
	if err := r.part(filler, kind, slot, src, n); err != nil {
		return err
	}
	if err := d.recordNow(filler, full); err != nil {
		return err
	}
	if err := d.waitEvent(emptier, full); err != nil {
		return err
	}
	if err := r.part(emptier, kind, dst, slot, n); err != nil {
		return err
	}
	return d.recordNow(emptier, free)
}

// part enqueues one of the two halves of a copy: a transfer on the lane, a move beside it.
func (r *ring) part(s streamHandle, kind copyKind, dst, src uint64, n int64) error {
	d := r.lane.dev
	if s == r.lane.handle {
		return d.copyAsync(s, kind, dst, src, n)
	}
	return result("cuLaunchHostFunc", C.host_move(s, C.uint64_t(dst), C.uint64_t(src), C.size_t(n)))
}
