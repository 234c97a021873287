//go:build cuda

package cuda

import (
	"errors"
	"runtime"

	"github.com/megatrain/mtc/runtime/device"
)

var _ device.Keeper = (*stream)(nil)

// keeping is a stream's state while Keep runs; the zero value is none.
type keeping struct {
	on  bool
	err error // why it cannot be kept
}

var errNotKept = errors.New("the launch cannot be kept")

// Keeps implements device.Keeper.
func (s *stream) Keeps() bool { return s.dev.graphs }

// Keep implements device.Keeper: launches become a CUDA graph. Everything that they need was made
// ready by Warm, so none of them allocates or loads code.
func (s *stream) Keep(run func()) (again func() bool) {
	d := s.dev
	if !d.graphs || d.failure.Load() != nil {
		return nil
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if d.capture(s.handle) != nil {
		return nil
	}
	s.keep = keeping{on: true}
	run()
	why := s.keep.err
	s.keep = keeping{}
	g, err := d.captured(s.handle, why != nil)
	if why != nil || err != nil {
		return nil // they are launched one by one
	}
	s.kept = append(s.kept, g)
	scratch := s.scratch
	return func() bool {
		switch {
		case s.scratch != scratch:
			return false // it grew, and the graph names what it was
		case d.failure.Load() != nil:
			return true
		}
		if err := d.launchGraph(g, s.handle); err != nil {
			d.failed(s, "a graph", err)
		}
		return true
	}
}
