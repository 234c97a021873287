package checkpoint

import (
	"unsafe"

	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/vec"
)

// Masters are a slab's f32 weights in memory, whole or split in halves of 16 bits
// (plan/split.go). Of a slab without lo, as generation has it, and of a frozen one, there is only hi.
type Masters struct {
	whole  []float32
	hi, lo []uint16
}

// MastersOf finds the masters of a slab. A buffer that view does not know leaves them empty.
func MastersOf(s *plan.Slab, view View) Masters {
	if s.Frozen {
		if w := view(s.Weight); int64(len(w)) == 2*s.Elems {
			return Masters{hi: valuesOf[uint16](w)}
		}
	}
	if s.Lo == plan.NoBuf {
		return Masters{whole: valuesOf[float32](view(s.Weight))}
	}
	return Masters{hi: valuesOf[uint16](view(s.Weight)), lo: valuesOf[uint16](view(s.Lo))}
}

func valuesOf[E float32 | uint16](b []byte) []E {
	var x E
	return unsafe.Slice((*E)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(x)))
}

// Split reports whether the masters are in halves.
func (m *Masters) Split() bool { return m.whole == nil }

// Range is n masters from off on, in place; not of split ones.
func (m *Masters) Range(off, n int64) []float32 { return m.whole[off : off+n] }

// Rounded is n masters from off on, in place, where the upper halves are all there is; else nil.
func (m *Masters) Rounded(off, n int64) []uint16 {
	if m.whole != nil || m.lo != nil {
		return nil
	}
	return m.hi[off : off+n]
}

// Read copies masters from off on.
func (m *Masters) Read(dst []float32, off int64) {
	if m.Split() {
		vec.JoinMasters(dst, m.hi[off:], from(m.lo, off))
		return
	}
	copy(dst, m.whole[off:])
}

// Write sets masters from off on.
func (m *Masters) Write(off int64, src []float32) {
	if m.Split() {
		vec.SplitMasters(m.hi[off:], from(m.lo, off), src)
		return
	}
	copy(m.whole[off:], src)
}

// from is the rest of lower halves, nil of none.
func from(lo []uint16, off int64) []uint16 {
	if lo == nil {
		return nil
	}
	return lo[off:]
}
