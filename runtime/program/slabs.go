package program

import (
	"io"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/cores"
	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/plan"
)

// slabs gives access to whole buffers of slabs. What lies in a GPU's memory is copied to the
// host, and back by flush, or once more than a few later buffers have been looked at: so host
// memory holds the state of one slab, however large the model is.
type slabs struct {
	e *engine.Engine
	// fresh says that the device's memory still holds the zeros that it was given with, but for
	// the buffers that were put back.
	fresh bool
	back  map[plan.BufID]bool
	// readOnly says that nothing is written: buffers are dropped, not copied back.
	readOnly bool

	staged []staged
	spare  [][]byte
	err    error // the first failure of a copy
}

// staged is a copy of a buffer of the device.
type staged struct {
	id    plan.BufID
	bytes []byte
}

// stagedMost is how many buffers are held: those that make up a slab, weights in two halves and
// two moments.
const stagedMost = 4

// view is a whole buffer, nil when it is not allocated. Before writing has an effect, flush. It
// is valid until stagedMost others have been looked at.
func (s *slabs) view(id plan.BufID) []byte {
	n := s.e.Plan().Buffers[id].Bytes
	p := s.e.Ptr(id, 0)
	if b := s.e.Device().View(p, n); b != nil || p.Nil() {
		return b
	}
	for _, st := range s.staged {
		if st.id == id {
			return st.bytes
		}
	}
	if len(s.staged) == stagedMost {
		s.put(s.staged[0])
		s.staged = s.staged[1:]
	}
	b := s.room(n)
	if s.fresh && !s.back[id] {
		zero(b)
	} else {
		s.note(s.e.Device().Read(b, p))
	}
	s.staged = append(s.staged, staged{id, b})
	return b
}

// flush writes back what view copied, and forgets it.
func (s *slabs) flush() error {
	for _, st := range s.staged {
		s.put(st)
	}
	s.staged = nil
	return s.err
}

func (s *slabs) put(st staged) {
	if !s.readOnly {
		s.note(s.e.Device().Write(s.e.Ptr(st.id, 0), st.bytes))
		if s.back == nil {
			s.back = map[plan.BufID]bool{}
		}
		s.back[st.id] = true
	}
	s.spare = append(s.spare, st.bytes)
}

// guard makes the writing of a tensor fail when what it was read from could not be copied.
func (s *slabs) guard(files []checkpoint.File) {
	for _, f := range files {
		for i := range f.Tensors {
			write := f.Tensors[i].Stream
			f.Tensors[i].Stream = func(w io.Writer) error {
				if err := write(w); err != nil {
					return err
				}
				return s.err
			}
		}
	}
}

func (s *slabs) note(err error) {
	if s.err == nil {
		s.err = err
	}
}

// room is n bytes, of a buffer that is no longer used where one is large enough.
func (s *slabs) room(n int64) []byte {
	for i, b := range s.spare {
		if int64(cap(b)) >= n {
			s.spare = append(s.spare[:i], s.spare[i+1:]...)
			return b[:n]
		}
	}
	s.spare = nil // too small: let them go before a larger one is taken
	return make([]byte, n, s.largest(n))
}

// largest is the bytes of the largest buffer of a slab's weights, or n if that is more. A buffer
// made as large at once serves those that come, and of its memory only what is written to is taken.
func (s *slabs) largest(n int64) int64 {
	p := s.e.Plan()
	for i := range p.Slabs {
		n = max(n, p.Buffers[p.Slabs[i].Weight].Bytes)
	}
	return n
}

// zero clears memory on all cores.
func zero(b []byte) {
	cores.Each(int64(len(b)), 16<<20, func(from, to int64) { clear(b[from:to]) })
}
