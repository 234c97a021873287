package finite

import (
	"sync/atomic"

	"github.com/megatrain/mtc/runtime/device"
)

// Seen is what a check found in a value.
type Seen struct {
	Task            int    // that the queue was told it belongs to, -1: none
	Op, Value, Line string // as in CheckArgs
	Rows, D         int64
	Hash            uint64 // of the elements' bits and places; the same on every device for the same bits
	Finite          bool
	At              device.Ptr
}

var watcher atomic.Pointer[func(Seen)]

// Watch has f called for every check, in the order of the queue, from its goroutine; nil ends that.
func Watch(f func(Seen)) {
	if f == nil {
		watcher.Store(nil)
		return
	}
	watcher.Store(&f)
}

// found is the result of a check: what the kernel leaves in scratch memory.
type found struct {
	hash  uint64
	first int64  // element that is not finite, or the number of elements
	bits  uint32 // of that element, as f32
}

// judge tells the watcher, and returns a NonFinite.
func (f found) judge(a *device.Args) error {
	places.Lock()
	p := places.list[a.I[2]]
	places.Unlock()
	good := f.first >= a.I[0]*a.I[1]
	if w := watcher.Load(); w != nil {
		(*w)(Seen{
			Task: int(a.I[device.MaxInts-1]), Op: p.Op, Value: p.Value, Line: p.Line,
			Rows: a.I[0], D: a.I[1], Hash: f.hash, Finite: good, At: a.P[0],
		})
	}
	if good {
		return nil
	}
	return &NonFinite{Op: p.Op, Value: p.Value, Line: p.Line, Row: f.first / a.I[1], Column: f.first % a.I[1], Number: number(f.bits)}
}
