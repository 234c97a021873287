package program

import (
	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/plan"
)

// slabs gives access to whole buffers of slabs. What lies in a GPU's memory is copied to the
// host, and back by flush.
type slabs struct {
	e      *engine.Engine
	staged map[plan.BufID][]byte
	err    error // the first failure of a copy
}

// view is a whole buffer, nil when it is not allocated. Before writing has an effect, flush.
func (s *slabs) view(id plan.BufID) []byte {
	n := s.e.Plan().Buffers[id].Bytes
	p := s.e.Ptr(id, 0)
	if b := s.e.Device().View(p, n); b != nil || p.Nil() {
		return b
	}
	if b, ok := s.staged[id]; ok {
		return b
	}
	b := make([]byte, n)
	if err := s.e.Device().Read(b, p); err != nil && s.err == nil {
		s.err = err
	}
	if s.staged == nil {
		s.staged = map[plan.BufID][]byte{}
	}
	s.staged[id] = b
	return b
}

// flush writes back what view copied, and forgets it.
func (s *slabs) flush() error {
	for id, b := range s.staged {
		if err := s.e.Device().Write(s.e.Ptr(id, 0), b); err != nil && s.err == nil {
			s.err = err
		}
	}
	s.staged = nil
	return s.err
}
