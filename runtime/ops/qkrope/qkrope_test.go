package qkrope

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/optest"
	"github.com/megatrain/mtc/runtime/ops/rmsnorm"
	"github.com/megatrain/mtc/runtime/ops/rope"
	"github.com/megatrain/mtc/runtime/tensor"
)

// shape is one case: what the launches run over and what they are given.
type shape struct {
	rows, seq, pos, heads, kv, hd int
	norm                          int
	interleaved, weights, adds    bool
	frozen                        bool // weights that have no gradient
	starts                        bool
	inPlace                       bool
}

func (s shape) String() string {
	name := fmt.Sprintf("%s %dx%d heads %d+%d of %d", []string{"plain", "before", "after"}[s.norm], s.rows, s.seq, s.heads, s.kv, s.hd)
	for _, f := range []struct {
		set  bool
		name string
	}{{s.interleaved, "interleaved"}, {s.weights, "weights"}, {s.frozen, "frozen"}, {s.adds, "adds"}, {s.starts, "documents"}, {s.inPlace, "in place"}} {
		if f.set {
			name += " " + f.name
		}
	}
	return name
}

func shapes() []shape {
	var out []shape
	for norm := range 3 {
		for _, hd := range []int{16, 32, 48, 64, 96, 128, 256} {
			out = append(out, shape{rows: 15, seq: 5, heads: 6, kv: 2, hd: hd, norm: norm, weights: true})
		}
		out = append(out,
			shape{rows: 3, seq: 3, heads: 2, kv: 1, hd: 512, norm: norm, weights: true},
			shape{rows: 3, seq: 3, heads: 1, kv: 1, hd: 1024, norm: norm, weights: true},
			shape{rows: 400, seq: 100, heads: 9, kv: 3, hd: 64, norm: norm, weights: true, adds: true, starts: true},
			shape{rows: 7, seq: 7, heads: 3, hd: 32, norm: norm, adds: true},
			shape{rows: 8, seq: 4, pos: 3, heads: 4, kv: 4, hd: 64, norm: norm, weights: true, interleaved: true, adds: true},
			shape{rows: 8, seq: 4, heads: 4, kv: 2, hd: 128, norm: norm, interleaved: true},
			shape{rows: 8, seq: 4, heads: 4, kv: 2, hd: 128, norm: norm, weights: true, frozen: true, adds: true},
			shape{rows: 64, seq: 8, heads: 5, kv: 1, hd: 128, norm: norm, weights: true, inPlace: true},
			shape{rows: 64, seq: 8, heads: 5, kv: 1, hd: 96, norm: norm, weights: true, inPlace: true},
		)
	}
	return out
}

// TestEqualsTheParts: the fused launches give what those of rope and rmsnorm give: on a processor to
// the bit, on a GPU within a rounding of the last one, and a line of the log says whether to the bit.
func TestEqualsTheParts(t *testing.T) {
	for _, s := range shapes() {
		t.Run(s.String(), func(t *testing.T) {
			t.Run("cpu", func(t *testing.T) {
				s.check(t, 0, 0, func() *optest.Machine { return optest.NewMachine(t, 2) })
			})
			optest.OnGPU(t, func(t *testing.T, f32 bool) {
				tol := 1.0 / 64
				if f32 {
					tol = 1e-5
				}
				s.check(t, tol, 1e-4, func() *optest.Machine { return optest.GPU(t, f32) })
			})
		})
	}
}

// results are what a case gives, by name.
type results map[string][]float32

// check allows activations tol of their largest, sums and statistics sums of theirs; 0 is to the bit.
func (s shape) check(t *testing.T, tol, sums float64, machine func() *optest.Machine) {
	got, want := s.run(machine(), true), s.run(machine(), false)
	for name, w := range want {
		if slices.Equal(got[name], w) {
			continue
		}
		i := 0
		for i < len(w) && got[name][i] == w[i] {
			i++
		}
		if tol == 0 {
			t.Errorf("%s, element %d of %d: %v, by the parts %v", name, i, len(w), got[name][i], w[i])
			continue
		}
		t.Logf("%s: other bits, element %d of %d: %v, by the parts %v", name, i, len(w), got[name][i], w[i])
		wide := make([]float64, len(w))
		for i, x := range w {
			wide[i] = float64(x)
		}
		allowed := tol
		if strings.HasPrefix(name, "inv") || strings.HasPrefix(name, "d.w") {
			allowed = sums
			if tol > sums { // sums over gradients in bf16
				allowed = tol
			}
		}
		optest.Compare(t, name, got[name], wide, allowed)
	}
}

// sideOf is one of q and k.
type sideOf struct {
	name                      string
	heads                     int
	x, y, dy, dx, add, w, inv device.Ptr
	dw, addw                  device.Ptr
}

func (s shape) run(m *optest.Machine, fused bool) results {
	r := rand.New(rand.NewPCG(1, uint64(s.hd)))
	numbers := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	table := make([]float32, (s.pos+s.seq)*s.hd)
	rope.Angles(table, rope.AnglesArgs{HD: s.hd, Theta: 100})
	cs := m.F32(table...)
	var starts device.Ptr
	if s.starts {
		at := make([]int32, s.rows)
		for i := range at {
			at[i] = int32(i % s.seq / 9 * 9)
		}
		starts = m.I32(at...)
	}
	var sides []*sideOf
	for i, heads := range []int{s.heads, s.kv} {
		n := s.rows * heads * s.hd
		p := &sideOf{name: []string{"q", "k"}[i], heads: heads}
		if heads > 0 {
			p.x, p.dy = m.Act(numbers(n)...), m.Act(numbers(n)...)
			p.y, p.dx = m.Bytes(int64(n)*m.ActSize()), m.Bytes(int64(n)*m.ActSize())
			if s.adds {
				p.add = m.Act(numbers(n)...)
			}
			if s.norm != None {
				p.inv = m.Bytes(int64(s.rows*heads) * 4)
			}
			if s.norm != None && s.weights {
				p.w = m.Act(numbers(s.hd)...)
				if add := m.F32(numbers(s.hd)...); !s.frozen {
					p.dw, p.addw = m.Bytes(int64(s.hd)*4), add
				}
			}
		}
		sides = append(sides, p)
	}
	if fused {
		s.fused(m, cs, starts, sides[0], sides[1])
	} else {
		for _, p := range sides {
			if p.heads > 0 {
				s.parts(m, cs, starts, p)
			}
		}
	}
	m.Sync()
	out := results{}
	for _, p := range sides {
		n := int64(s.rows * p.heads * s.hd)
		if n == 0 {
			continue
		}
		if !s.inPlace {
			out["y"+p.name] = m.ReadAct(p.y, n)
		}
		out["d."+p.name] = m.ReadAct(p.dx, n)
		if !p.inv.Nil() {
			out["inv"+p.name] = m.ReadF32(p.inv, int64(s.rows*p.heads))
		}
		if !p.dw.Nil() {
			out["d.w"+p.name] = m.ReadF32(p.dw, int64(s.hd))
		}
	}
	return out
}

const eps = 1e-5

func (s shape) fused(m *optest.Machine, cs, starts device.Ptr, q, k *sideOf) {
	Forward(m.Queue, ForwardArgs{
		Q: q.x, K: k.x, YQ: q.y, YK: k.y, WQ: q.w, WK: k.w, Invq: q.inv, Invk: k.inv, CS: cs, Starts: starts,
		Rows: s.rows, Seq: s.seq, Pos: s.pos, Heads: s.heads, KV: s.kv, HD: s.hd, Interleaved: s.interleaved, Norm: s.norm, Eps: eps,
	})
	if s.inPlace { // gradients over what they are made of
		q.dx, k.dx = q.dy, k.dy
	}
	Backward(m.Queue, BackwardArgs{
		Q: q.x, K: k.x, DYQ: q.dy, DYK: k.dy, AddDQ: q.add, AddDK: k.add, DQ: q.dx, DK: k.dx, WQ: q.w, WK: k.w,
		Invq: q.inv, Invk: k.inv, AddDWQ: q.addw, AddDWK: k.addw, DWQ: q.dw, DWK: k.dw, CS: cs, Starts: starts,
		Rows: s.rows, Seq: s.seq, Pos: s.pos, Heads: s.heads, KV: s.kv, HD: s.hd, Interleaved: s.interleaved, Norm: s.norm, Eps: eps,
	})
}

// parts launches rope and rmsnorm.
func (s shape) parts(m *optest.Machine, cs, starts device.Ptr, p *sideOf) {
	d := p.heads * s.hd
	between, dbetween := m.Bytes(int64(s.rows*d)*m.ActSize()), m.Bytes(int64(s.rows*d)*m.ActSize())
	turn := func(x, y device.Ptr) {
		rope.Forward(m.Queue, rope.ForwardArgs{X: x, Y: y, CS: cs, Starts: starts, Rows: s.rows, Seq: s.seq, Pos: s.pos, D: d, HD: s.hd, Interleaved: s.interleaved})
	}
	back := func(dy, add, dx device.Ptr) {
		rope.Backward(m.Queue, rope.BackwardArgs{DY: dy, AddDX: add, DX: dx, CS: cs, Starts: starts, Rows: s.rows, Seq: s.seq, Pos: s.pos, D: d, HD: s.hd, Interleaved: s.interleaved})
	}
	norm := func(x, y device.Ptr) {
		rmsnorm.Forward(m.Queue, rmsnorm.ForwardArgs{X: x, Y: y, Weight: p.w, Inv: p.inv, Rows: s.rows, D: d, Per: s.hd, Eps: eps})
	}
	normBack := func(x, dy, add, dx device.Ptr) {
		rmsnorm.Backward(m.Queue, rmsnorm.BackwardArgs{X: x, DY: dy, Weight: p.w, Inv: p.inv, AddDX: add, DX: dx, AddDWeight: p.addw, DWeight: p.dw, Rows: s.rows, D: d, Per: s.hd, Eps: eps})
	}
	switch s.norm {
	case None:
		turn(p.x, p.y)
		back(p.dy, p.add, p.dx)
	case Before:
		norm(p.x, between)
		turn(between, p.y)
		back(p.dy, device.Ptr{}, dbetween)
		normBack(p.x, dbetween, p.add, p.dx)
	case After:
		turn(p.x, between)
		norm(between, p.y)
		normBack(between, p.dy, device.Ptr{}, dbetween)
		back(dbetween, p.add, p.dx)
	}
}

// TestForwardInPlace: results over their operands are the same.
func TestForwardInPlace(t *testing.T) {
	run := func(t *testing.T, machine func() *optest.Machine) {
		for norm := range 3 {
			for _, hd := range []int{32, 96, 128} {
				s := shape{rows: 40, seq: 8, heads: 5, kv: 2, hd: hd, norm: norm}
				var got [2][]float32
				for i := range got {
					m := machine()
					x := make([]float32, s.rows*(s.heads+s.kv)*hd)
					for j := range x {
						x[j] = float32(j%37) - 18
					}
					table := make([]float32, s.seq*hd)
					rope.Angles(table, rope.AnglesArgs{HD: hd, Theta: 100})
					nq := s.rows * s.heads * hd
					q, k := m.Act(x[:nq]...), m.Act(x[nq:]...)
					yq, yk := q, k
					if i == 0 {
						yq, yk = m.Bytes(int64(nq)*m.ActSize()), m.Bytes(int64(len(x)-nq)*m.ActSize())
					}
					Forward(m.Queue, ForwardArgs{Q: q, K: k, YQ: yq, YK: yk, Invq: m.Bytes(int64(s.rows*s.heads) * 4), Invk: m.Bytes(int64(s.rows*s.kv) * 4),
						CS: m.F32(table...), Rows: s.rows, Seq: s.seq, Heads: s.heads, KV: s.kv, HD: hd, Norm: norm, Eps: eps})
					m.Sync()
					got[i] = append(m.ReadAct(yq, int64(nq)), m.ReadAct(yk, int64(len(x)-nq))...)
				}
				if !slices.Equal(got[0], got[1]) {
					t.Errorf("norm %d, heads of %d: in place other values", norm, hd)
				}
			}
		}
	}
	t.Run("cpu", func(t *testing.T) { run(t, func() *optest.Machine { return optest.NewMachine(t, 2) }) })
	optest.OnGPU(t, func(t *testing.T, f32 bool) { run(t, func() *optest.Machine { return optest.GPU(t, f32) }) })
}

func TestCost(t *testing.T) {
	like := &op.Call{DType: tensor.BF16}
	s := op.Sizes{Batch: 2, Seq: 8}
	for _, c := range []struct {
		norm              int64
		forward, backward op.Cost
	}{
		// 16 rows of 3 heads of 32: 1,536 elements; the table of 8 positions has 1,024 bytes, inv 192.
		{None, op.Cost{FLOPs: 3 * 1536, Bytes: 2*2*1536 + 1024}, op.Cost{FLOPs: 4 * 1536, Bytes: 2*2*1536 + 1024}},
		{Before, op.Cost{FLOPs: 7 * 1536, Bytes: 2*2*1536 + 1216}, op.Cost{FLOPs: 16 * 1536, Bytes: 3*2*1536 + 1216}},
	} {
		call := New(like, Sides{Heads: 2, KV: 1, HD: 32, Norm: c.norm})
		if got := Def.Forward.Cost(call, s); got != c.forward {
			t.Errorf("forward, norm %d: %+v, by hand %+v", c.norm, got, c.forward)
		}
		if got := Def.Backward[0].Cost(call, s); got != c.backward {
			t.Errorf("backward, norm %d: %+v, by hand %+v", c.norm, got, c.backward)
		}
	}
}
