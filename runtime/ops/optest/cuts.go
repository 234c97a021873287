package optest

import (
	"slices"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
)

// chunks runs a row-wise op over chunks of rows: results of rows have the same bits, and
// gradients of weights, added up chunk after chunk, the same value.
func (s *setup) chunks(t testing.TB) {
	if !s.call.Def.RowWise {
		t.Skip("not row-wise")
	}
	base := s.run(t, 2)
	rows := s.sizes.Rows()
	for _, l := range append([]op.Launch{s.call.Def.Forward}, s.backward()...) {
		m := NewMachine(t, 2)
		whole := s.filled(m, l, base)
		// Chunks of 1, 2, 1, 2, ... rows.
		for r, size := int64(0), int64(1); r < rows; r, size = r+size, 3-size {
			n := min(size, rows-r)
			part := *s
			part.sizes = op.Sizes{Batch: 1, Seq: n}
			ptrs := map[string]device.Ptr{}
			for _, o := range slices.Concat(l.Reads, l.Writes) {
				p := whole[op.Field(o)]
				if s.byRow(o) {
					p = p.At(4 * s.elems(o) / rows * r)
				}
				ptrs[op.Field(o)] = p
				if slices.Contains(l.Adds, o) && !s.byRow(o) && r > 0 {
					ptrs["Add"+op.Field(o)] = p
				}
			}
			part.launch(m, l, ptrs)
		}
		m.Sync()
		for _, w := range l.Writes {
			n := s.elems(w)
			if n == 0 {
				continue
			}
			got := m.ReadF32(whole[op.Field(w)], n)
			if s.byRow(w) {
				same(t, w+" in chunks", got, base[w])
			} else {
				Compare(t, w, got, wide(base[w]), 1e-6)
			}
		}
	}
}

// threads runs sizes that are worth cutting at several numbers of threads.
func (s *setup) threads(t testing.TB) {
	big := s.resized(3, 700)
	one := big.run(t, 1)
	for _, n := range []int{2, 7} {
		for name, got := range big.run(t, n) {
			same(t, name, got, one[name])
		}
	}
}

// decode runs one sequence row by row, each at its position, as generation does: every row
// has the bits that it has in a whole sequence.
func (s *setup) decode(t testing.TB) {
	whole := s.resized(1, s.good.Seq)
	base := whole.run(t, 2)["y"]
	l := s.call.Def.Forward
	if s.call.Def.Cached != nil {
		l = *s.call.Def.Cached
	}
	m := NewMachine(t, 2)
	all := whole.place(m)
	for _, st := range s.call.State {
		all[op.Field(st.Name)] = m.Bytes(4 * whole.elems(st.Name))
	}
	rows := s.good.Seq
	for r := range rows {
		step := *s
		step.sizes, step.pos = op.Sizes{Batch: 1, Seq: 1}, r
		ptrs := map[string]device.Ptr{}
		for _, o := range slices.Concat(l.Reads, l.Writes) {
			p := all[op.Field(o)]
			if whole.byRow(o) {
				p = p.At(4 * whole.elems(o) / rows * r)
			}
			ptrs[op.Field(o)] = p
		}
		step.launch(m, l, ptrs)
	}
	m.Sync()
	same(t, "y decoded", m.ReadF32(all["Y"], int64(len(base))), base)
}
