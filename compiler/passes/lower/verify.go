package lower

import (
	"fmt"

	"github.com/megatrain/mtc/compiler/ir"
)

// verify proves a placement by running the function over memory that remembers which value
// each range holds: every operand must be there when it is read, a launch must not write
// over what it reads except where the op allows it, and results must be there at the end.
// The body of the head's loop runs twice, so that what one chunk leaves is seen by the next.
func verify(f *fn, p *placement) error {
	m := memory{}
	for v, q := range f.pins {
		if at, ok := p.at[v]; ok && q.filled {
			m.put(at, v)
		}
	}
	for i := 0; i < len(f.insts); i++ {
		if !f.insts[i].inLoop {
			if err := m.step(f.insts[i], p); err != nil {
				return err
			}
			continue
		}
		end := i
		for end < len(f.insts) && f.insts[end].inLoop {
			end++
		}
		for pass := range 2 {
			for _, in := range f.insts[i:end] {
				if err := m.kept(in, p, pass); err != nil {
					return err
				}
				if err := m.step(in, p); err != nil {
					return err
				}
			}
		}
		i = end - 1
	}
	for v, q := range f.pins {
		at, ok := p.at[v]
		if !ok || !q.result && !(q.filled && q.locked) {
			continue
		}
		if at.Region != q.region || at.Index != q.index || at.Off != q.off {
			return fmt.Errorf("%s lies in %v, not where it is pinned", v, at)
		}
		if err := m.holds(at, v); err != nil {
			return fmt.Errorf("at the end: %w", err)
		}
	}
	return nil
}

type memKey struct {
	region ir.Region
	index  int
}

// segment is a range of a region that holds a value, or part of it.
type segment struct {
	lo, hi int64
	v      *value
}

type memory map[memKey][]segment

func key(at ir.Place) memKey { return memKey{at.Region, at.Index} }

// put records that v was written at a place; what lay there is gone, in part or in whole.
func (m memory) put(at ir.Place, v *value) {
	lo, hi := at.Off, at.Off+v.bytes
	var out []segment
	for _, s := range m[key(at)] {
		if s.lo < lo {
			out = append(out, segment{s.lo, min(s.hi, lo), s.v})
		}
		if s.hi > hi {
			out = append(out, segment{max(s.lo, hi), s.hi, s.v})
		}
	}
	m[key(at)] = append(out, segment{lo, hi, v})
}

// holds checks that the whole of v is at a place.
func (m memory) holds(at ir.Place, v *value) error {
	for _, s := range m[key(at)] {
		if s.v == v && s.lo == at.Off && s.hi == at.Off+v.bytes {
			return nil
		}
	}
	return fmt.Errorf("%s is not at region %d[%d]+%d", v, at.Region, at.Index, at.Off)
}

// kept checks, in the second pass over the loop, that the rows which the first pass wrote of
// a value for all rows are still there.
func (m memory) kept(in *inst, p *placement, pass int) error {
	if pass == 0 {
		return nil
	}
	for _, w := range in.writes {
		if w.v == nil || w.v.chunk || w.v.mutable {
			continue
		}
		if err := m.holds(p.at[w.v], w.v); err != nil {
			return fmt.Errorf("rows of an earlier chunk are lost: %w", err)
		}
	}
	return nil
}

// step runs one launch.
func (m memory) step(in *inst, p *placement) error {
	name := in.call.Def.Name + "." + in.launch.Func
	for _, list := range [][]operand{in.reads, in.adds} {
		for _, o := range list {
			if o.v == nil {
				continue
			}
			if err := m.holds(p.at[o.v], o.v); err != nil {
				return fmt.Errorf("%s reads %s: %w", name, o.name, err)
			}
		}
	}
	for _, w := range in.writes {
		if w.v == nil {
			continue
		}
		for _, list := range [][]operand{in.reads, in.adds} {
			for _, o := range list {
				if o.v == nil || o.v == w.v && w.v.mutable || !overlap(p.at[o.v], o.v.bytes, p.at[w.v], w.v.bytes) {
					continue
				}
				if p.at[o.v].Off != p.at[w.v].Off || o.v.bytes != w.v.bytes || !mayShare(in, w, o.v) {
					return fmt.Errorf("%s writes %s over %s, which it reads", name, w.name, o.v)
				}
			}
		}
		for _, o := range in.writes {
			if o.v != nil && o.v != w.v && overlap(p.at[o.v], o.v.bytes, p.at[w.v], w.v.bytes) {
				return fmt.Errorf("%s writes %s and %s to one place", name, w.name, o.name)
			}
		}
	}
	for _, w := range in.writes {
		if w.v != nil {
			m.put(p.at[w.v], w.v)
		}
	}
	return nil
}

func overlap(a ir.Place, n int64, b ir.Place, m int64) bool {
	return key(a) == key(b) && a.Off < b.Off+m && b.Off < a.Off+n
}
