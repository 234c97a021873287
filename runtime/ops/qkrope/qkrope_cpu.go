package qkrope

import (
	"math"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/internal/loops"
	"github.com/megatrain/mtc/runtime/vec"
)

// turner turns heads by the angles of their rows.
type turner struct {
	seq, pos, hd int64
	cs           []float32
	starts       []int32
	rotate       func(dst, add, a, cos, sin []float32)
}

func newTurner(c device.CPU, a *device.Args) *turner {
	t := &turner{seq: a.I[1], pos: a.I[2], hd: a.I[5], rotate: vec.RotateHalf}
	if a.I[6] != 0 {
		t.rotate = vec.RotatePairs
	}
	t.cs, t.starts = c.F32(a.P[8], (t.pos+t.seq)*t.hd), c.I32(a.P[9], a.I[0])
	return t
}

// angles are the cosines and sines of a row.
func (t *turner) angles(r int64) (cos, sin []float32) {
	at := t.pos + r%t.seq
	if t.starts != nil {
		at -= int64(t.starts[r])
	}
	row := t.cs[at*t.hd:][:t.hd]
	return row[:t.hd/2], row[t.hd/2:]
}

// back is angles with the sines negated into scratch.
func (t *turner) back(r int64, scratch []float32) (cos, sin []float32) {
	cos, sin = t.angles(r)
	vec.Scale(scratch, sin, -1)
	return cos, scratch
}

// side is q or k: group g of hd elements is head g % heads of row g / heads.
type side struct {
	heads                 int64
	x, dy, add, dx        []float32
	y, weight, inv        []float32
	addWeight, dweight    []float32
	rows, hd, norm, width int64
}

// sides are q, and k where there is one.
func sides(c device.CPU, a *device.Args, back bool) []*side {
	var out []*side
	for k := range 2 {
		s := &side{heads: a.I[3+k], rows: a.I[0], hd: a.I[5], norm: a.I[7]}
		s.width = s.heads * s.hd
		if s.heads == 0 {
			continue
		}
		n := s.rows * s.width
		s.x, s.weight, s.inv = c.F32(a.P[k], n), c.F32(a.P[4+k], s.hd), c.F32(a.P[6+k], s.rows*s.heads)
		if back {
			s.dy, s.add, s.dx = c.F32(a.P[2+k], n), c.F32(a.P[10+k], n), c.F32(a.P[12+k], n)
			s.addWeight, s.dweight = c.F32(a.P[14+k], s.hd), c.F32(a.P[16+k], s.hd)
		} else {
			s.y = c.F32(a.P[2+k], n)
		}
		out = append(out, s)
	}
	return out
}

func forwardCPU(c device.CPU, a *device.Args) {
	t, eps := newTurner(c, a), float64(a.F[0])
	for _, s := range sides(c, a, false) {
		normed := func(g int64, y, x []float32) {
			inv := float32(1 / math.Sqrt(vec.SumSq(x)/float64(s.hd)+eps))
			s.inv[g] = inv
			vec.NormApply(y, x, 0, inv, s.weight, nil)
		}
		loops.Rows(c, s.rows, s.width, func(lo, hi int64) {
			for r := lo; r < hi; r++ {
				cos, sin := t.angles(r)
				for g := r * s.heads; g < (r+1)*s.heads; g++ {
					x, y := s.x[g*s.hd:][:s.hd], s.y[g*s.hd:][:s.hd]
					if s.norm == Before {
						normed(g, y, x)
						x = y
					}
					t.rotate(y, nil, x, cos, sin)
					if s.norm == After {
						normed(g, y, y)
					}
				}
			}
		})
	}
}

// backwardCPU makes the sums over rows first, since dx may lie where x or dy does.
func backwardCPU(c device.CPU, a *device.Args) {
	t := newTurner(c, a)
	for _, s := range sides(c, a, true) {
		if s.dweight != nil {
			loops.SumRows(c, s.rows, s.width, s.dweight, s.addWeight, func(acc []float32, r int64) {
				scratch := loops.Floats(2 * s.hd)
				defer scratch.Free()
				for h := range s.heads {
					g := r*s.heads + h
					dy, x := s.normSide(t, r, g, scratch.F)
					vec.NormWeight(acc[h*s.hd:][:s.hd], nil, dy, x, 0, s.inv[g])
				}
			})
		}
		loops.Rows(c, s.rows, s.width, func(lo, hi int64) {
			scratch := loops.Floats(2*s.hd + s.hd/2)
			defer scratch.Free()
			for r := lo; r < hi; r++ {
				for g := r * s.heads; g < (r+1)*s.heads; g++ {
					s.input(t, r, g, scratch.F)
				}
			}
		})
	}
}

// normSide is the gradient of the norm's result and the norm's input, for group g of row r;
// whichever stands on the other side of the rotation is made in scratch [2*hd].
func (s *side) normSide(t *turner, r, g int64, scratch []float32) (dy, x []float32) {
	dy, x = s.dy[g*s.hd:][:s.hd], s.x[g*s.hd:][:s.hd]
	made := scratch[:s.hd]
	if s.norm == Before {
		cos, sin := t.back(r, scratch[s.hd:][:s.hd/2])
		t.rotate(made, nil, dy, cos, sin)
		return made, x
	}
	cos, sin := t.angles(r)
	t.rotate(made, nil, x, cos, sin)
	return dy, made
}

// input makes dx of group g of row r; scratch is [2.5*hd].
func (s *side) input(t *turner, r, g int64, scratch []float32) {
	i, j := g*s.hd, (g+1)*s.hd
	dx, add := s.dx[i:j], loops.Slice(s.add, i, j)
	if s.norm == None {
		cos, sin := t.back(r, scratch[:s.hd/2])
		t.rotate(dx, add, s.dy[i:j], cos, sin)
		return
	}
	dy, x := s.normSide(t, r, g, scratch)
	var dot float64
	if s.weight == nil {
		dot = vec.Dot(dy, x)
	} else {
		dot = vec.Dot3(dy, s.weight, x)
	}
	inv := s.inv[g]
	mean := float32(dot * float64(inv) / float64(s.hd))
	if s.norm == Before {
		vec.NormBackward(dx, add, dy, x, s.weight, 0, inv, 0, mean)
		return
	}
	d := scratch[s.hd:][:s.hd]
	vec.NormBackward(d, nil, dy, x, s.weight, 0, inv, 0, mean)
	cos, sin := t.back(r, scratch[2*s.hd:][:s.hd/2])
	t.rotate(dx, add, d, cos, sin)
}
