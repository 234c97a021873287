package schedule

import (
	"slices"

	"github.com/megatrain/mtc/runtime/plan"
)

// segments cuts every arena at the bounds of all buffers, so that each copy of a buffer is a
// range of whole segments and two buffers overlap exactly where they share one.
type segments struct {
	n    int
	lo   [2][]int32 // by parity copy, buffer: first segment
	hi   [2][]int32 // past the last
	solo []bool     // by buffer: one lane alone touches its segments
}

func newSegments(p *plan.Plan) *segments {
	s := &segments{solo: make([]bool, len(p.Buffers))}
	for c := range s.lo {
		s.lo[c], s.hi[c] = make([]int32, len(p.Buffers)), make([]int32, len(p.Buffers))
	}
	cuts := make([][]int64, len(p.Arenas))
	for i := 1; i < len(p.Buffers); i++ {
		b := &p.Buffers[i]
		cuts[b.Arena] = append(cuts[b.Arena], b.Off, b.Off+b.Bytes)
		if b.Parity {
			cuts[b.Arena] = append(cuts[b.Arena], b.Off+2*b.Bytes)
		}
	}
	base := make([]int, len(p.Arenas))
	for a := range cuts {
		slices.Sort(cuts[a])
		cuts[a] = slices.Compact(cuts[a])
		base[a] = s.n
		s.n += len(cuts[a])
	}
	at := func(a int, off int64) int32 {
		i, _ := slices.BinarySearch(cuts[a], off)
		return int32(base[a] + i)
	}
	for i := 1; i < len(p.Buffers); i++ {
		b := &p.Buffers[i]
		for c := range s.lo {
			off := b.Off
			if b.Parity {
				off += int64(c) * b.Bytes
			}
			s.lo[c][i], s.hi[c][i] = at(b.Arena, off), at(b.Arena, off+b.Bytes)
		}
	}
	s.findSolo(p)
	return s
}

// findSolo marks the buffers whose memory only one lane ever touches: its order is theirs.
func (s *segments) findSolo(p *plan.Plan) {
	lanes := make([]uint8, s.n)
	each := func(id plan.BufID, f func(i int32)) {
		for c := range s.lo {
			for i := s.lo[c][id]; i < s.hi[c][id]; i++ {
				f(i)
			}
		}
	}
	// A buffer's tasks are many and its segments the same: collect lanes by buffer first.
	touched := make([]uint8, len(p.Buffers))
	for i := range p.Tasks {
		t := &p.Tasks[i]
		for _, id := range t.Reads {
			touched[id] |= 1 << t.Lane
		}
		for _, id := range t.Writes {
			touched[id] |= 1 << t.Lane
		}
	}
	for id := 1; id < len(p.Buffers); id++ {
		each(plan.BufID(id), func(i int32) { lanes[i] |= touched[id] })
	}
	for id := 1; id < len(p.Buffers); id++ {
		var all uint8
		each(plan.BufID(id), func(i int32) { all |= lanes[i] })
		s.solo[id] = all&(all-1) == 0
	}
}

// copyOf is the parity copy a task of step `step` uses.
func copyOf(t *plan.Task, step int) int { return (step - t.Back) & 1 }
