package optest

import (
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
)

// addOperands checks that AddX may be another buffer (which stays as it is) or the result's
// own, that both give the same bits, and that the sum is right.
func (s *setup) addOperands(t testing.TB) {
	base := s.run(t, 2)
	for _, l := range append([]op.Launch{s.call.Def.Forward}, s.backward()...) {
		for _, g := range l.Adds {
			n := s.elems(g)
			if n == 0 {
				continue
			}
			add := uniform("add "+g, n, 1)
			run := func(shared bool) []float32 {
				m := NewMachine(t, 2)
				ptrs := s.filled(m, l, base)
				other := m.F32(add...)
				ptrs["Add"+op.Field(g)] = other
				if shared {
					ptrs[op.Field(g)] = other
				}
				s.launch(m, l, ptrs)
				m.Sync()
				if !shared {
					same(t, "the add operand of "+g, m.ReadF32(other, n), add)
				}
				return m.ReadF32(ptrs[op.Field(g)], n)
			}
			apart, shared := run(false), run(true)
			same(t, g+" added in place", shared, apart)
			want := wide(base[g])
			for i := range want {
				want[i] += float64(add[i])
			}
			Compare(t, g, apart, want, 1e-6)
		}
	}
}

// inPlace checks that each declared pair may share a buffer.
func (s *setup) inPlace(t testing.TB) {
	base := s.run(t, 2)
	for _, l := range append([]op.Launch{s.call.Def.Forward}, s.backward()...) {
		for _, pair := range l.InPlace {
			if s.elems(pair[0]) == 0 || s.elems(pair[1]) == 0 {
				continue
			}
			m := NewMachine(t, 2)
			ptrs := s.filled(m, l, base)
			ptrs[op.Field(pair[1])] = ptrs[op.Field(pair[0])]
			s.launch(m, l, ptrs)
			m.Sync()
			for _, w := range l.Writes {
				if n := s.elems(w); n > 0 {
					same(t, l.Func+": "+w+" with "+pair[1]+" over "+pair[0], m.ReadF32(ptrs[op.Field(w)], n), base[w])
				}
			}
		}
	}
}

// filled places everything that a launch reads, with what an earlier run computed, and fresh
// buffers for what it writes.
func (s *setup) filled(m *Machine, l op.Launch, done results) map[string]device.Ptr {
	ptrs := s.place(m)
	for _, r := range l.Reads {
		if v, ok := done[r]; ok && !strings.HasPrefix(r, "d.") {
			ptrs[op.Field(r)] = m.F32(v...)
		}
	}
	for _, w := range l.Writes {
		if n := s.elems(w); n > 0 {
			ptrs[op.Field(w)] = m.Bytes(4 * n)
		}
	}
	return ptrs
}
