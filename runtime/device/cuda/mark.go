//go:build cuda

package cuda

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/megatrain/mtc/runtime/device"
)

// A GPU that fails says so at some later call, when the submitter is far ahead. So the compute
// lane leaves a mark in pinned memory wherever a task begins: the number of the last one that
// did tells in which task the GPU was.

// markOffset is where the mark lies in the host lane's page, in a cache line of its own.
const markOffset = 64

// noBarrier is CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER: a mark orders no other memory.
const noBarrier = 1

// trail is the marks of a stream's.
type trail struct {
	on    bool
	at    uint64 // the address on the GPU
	flags uint32
	value *uint32 // the task plus 1
}

// startTrail tries what the driver can do; without marks the last launches are named.
func (s *stream) startTrail() {
	d := s.dev
	if d.host.counterAt == 0 {
		return
	}
	m := trail{at: d.host.counterAt + markOffset, flags: noBarrier, value: (*uint32)(unsafe.Pointer(&d.host.page[markOffset]))}
	err := d.writeValue(s.handle, m.at, 0, m.flags)
	if err != nil {
		m.flags = 0
		err = d.writeValue(s.handle, m.at, 0, m.flags)
	}
	m.on = err == nil
	s.trail = m
}

// mark enqueues that a task begins.
func (s *stream) mark(task int32) {
	if s.trail.on && s.dev.failure.Load() == nil {
		if err := s.dev.writeValue(s.handle, s.trail.at, uint32(task+1), s.trail.flags); err != nil {
			s.dev.failed(s, "", err)
		}
	}
}

// reached is the task that the lane began last, -1 when that is not known.
func (s *stream) reached() int {
	if !s.trail.on {
		return -1
	}
	return int(atomic.LoadUint32(s.trail.value)) - 1
}

// breakdown is what MTC_CUDA_FAIL launches.
var breakdown = device.Kernel{Name: "breakdown", CUDA: &device.Source{
	Text: `#include "mtc.cuh"
extern "C" __global__ void mtc_breakdown(Args a) {
    if (a.i[0] > 0) __trap();
}
`,
	Func: "mtc_breakdown",
	Grid: func(*device.Args) device.Grid { return device.Grid{X: 1, Threads: 1} },
}}

// mayFail counts launches down to the one that MTC_CUDA_FAIL names.
func (s *stream) mayFail() {
	d := s.dev
	if s.lane != device.Compute {
		return
	}
	if d.failAt--; d.failAt != 0 {
		return
	}
	a := device.Args{I: [device.MaxInts]int64{1}}
	if err := s.launch(&breakdown, &a); err != nil {
		d.failed(s, breakdown.Name, fmt.Errorf("MTC_CUDA_FAIL: %w", err))
	}
}
