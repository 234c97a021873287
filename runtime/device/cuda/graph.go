//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/megatrain/mtc/runtime/device"
)

var _ device.Keeper = (*stream)(nil)

const (
	// keptMost bounds the launches that a run keeps, and with them the memory of graphs, which is tens
	// of MiB. Steps of more launches are long: what there is to gain is little beside them.
	keptMost = 1 << 15
	// keptLeast is how many launches a graph is worth.
	keptLeast = 3
)

// keeping is a stream's state while Keep runs; the zero value is none.
type keeping struct {
	on  bool
	n   int   // launches
	err error // why it cannot be kept
}

var errNotKept = errors.New("the launch cannot be kept")

// Keeps implements device.Keeper.
func (s *stream) Keeps() bool { return s.dev.graphs }

// Keep implements device.Keeper: launches become a CUDA graph. Everything that they need was made
// ready by Warm, so none of them allocates or loads code.
func (s *stream) Keep(run func()) (again func() bool) {
	d := s.dev
	if !d.graphs || d.failure.Load() != nil || s.keptN >= keptMost {
		return nil
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.capture(s.handle); err != nil {
		d.noGraphs(err)
		return nil
	}
	s.keep = keeping{on: true}
	run()
	k := s.keep
	s.keep = keeping{}
	g, err := d.captured(s.handle, k.err != nil || k.n < keptLeast)
	if k.err != nil {
		err = k.err
	}
	if err != nil || g == nil {
		if err != nil && err != errNotKept {
			d.noGraphs(err)
		}
		return nil // they are launched one by one
	}
	s.kept, s.keptN = append(s.kept, g), s.keptN+k.n
	scratch := s.scratch
	return func() bool {
		switch {
		case s.scratch != scratch || !d.graphs:
			return false // it grew, and the graph names what it was
		case d.failure.Load() != nil:
			return true
		}
		if d.jitter != nil {
			d.jitter.stall(s)
		}
		if err := d.launchGraph(g, s.handle); sticky(codeOf(err)) {
			d.failed(s, "a graph", err)
		} else if err != nil {
			d.noGraphs(err)
		}
		return d.graphs
	}
}

// noGraphs does without from now on: launches one by one compute the same.
func (d *Device) noGraphs(err error) {
	d.graphs = false
	if !sticky(codeOf(err)) {
		fmt.Fprintf(os.Stderr, "note: kernels are launched one by one, since the driver takes no CUDA graphs here: %v\n", err)
	}
}
