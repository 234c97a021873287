package program

import (
	"io"
	"runtime/debug"

	"github.com/megatrain/mtc/runtime/checkpoint"
	"github.com/megatrain/mtc/runtime/cores"
	"github.com/megatrain/mtc/runtime/engine"
	"github.com/megatrain/mtc/runtime/plan"
)

// slabs gives access to whole buffers of slabs. What lies in a GPU's memory is copied to the
// host, and back by flush, or once what is looked at later has no room beside it: so host memory
// holds what plan.Staged counts, however large the model is.
type slabs struct {
	e *engine.Engine
	// fresh says that the device's memory still holds the zeros that it was given with, but for
	// the buffers that were put back.
	fresh bool
	back  map[plan.BufID]bool
	// readOnly says that nothing is written: buffers are dropped, not copied back.
	readOnly bool

	staged []staged
	memory []byte // that of staged; what it has been taken of
	taken  int64
	err    error // the first failure of a copy
}

// staged is a copy of a buffer of the device.
type staged struct {
	id    plan.BufID
	bytes []byte
}

// view is a whole buffer, nil when it is not allocated. Before writing has an effect, flush. It
// is valid until another is looked at; the upper halves of weights also while the lower ones are.
func (s *slabs) view(id plan.BufID) []byte {
	p := s.e.Plan()
	n, at := p.Buffers[id].Bytes, s.e.Ptr(id, 0)
	if b := s.e.Device().View(at, n); b != nil || at.Nil() {
		return b
	}
	for _, st := range s.staged {
		if st.id == id {
			return st.bytes
		}
	}
	if need := n + p.Halves(id); s.taken+need > int64(len(s.memory)) {
		if s.putAll(); need > int64(len(s.memory)) { // at first, or of a router
			s.memory = make([]byte, max(need, p.Staged()))
		}
	}
	b := s.memory[s.taken : s.taken+n]
	s.taken += n
	if s.fresh && !s.back[id] {
		zero(b)
	} else {
		s.note(s.e.Device().Read(b, at))
	}
	s.staged = append(s.staged, staged{id, b})
	return b
}

// flush writes back what view copied.
func (s *slabs) flush() error {
	s.putAll()
	return s.err
}

// end is flush where no more is looked at: the memory goes back to the system, and is no room for what else
// there is to be collected.
func (s *slabs) end() error {
	s.putAll()
	if large := len(s.memory) > 64<<20; large {
		s.memory = nil
		debug.FreeOSMemory()
	}
	return s.err
}

func (s *slabs) putAll() {
	for _, st := range s.staged {
		if s.readOnly {
			continue
		}
		s.note(s.e.Device().Write(s.e.Ptr(st.id, 0), st.bytes))
		if s.back == nil {
			s.back = map[plan.BufID]bool{}
		}
		s.back[st.id] = true
	}
	s.staged, s.taken = nil, 0
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

// zero clears memory on all cores.
func zero(b []byte) {
	cores.Each(int64(len(b)), 16<<20, func(from, to int64) { clear(b[from:to]) })
}
