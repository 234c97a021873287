package bench

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/add"
	opcopy "github.com/megatrain/mtc/runtime/ops/copy"
	"github.com/megatrain/mtc/runtime/ops/crossentropy"
	"github.com/megatrain/mtc/runtime/ops/embed"
	"github.com/megatrain/mtc/runtime/ops/gelu"
	"github.com/megatrain/mtc/runtime/ops/layernorm"
	"github.com/megatrain/mtc/runtime/ops/linear"
	"github.com/megatrain/mtc/runtime/ops/qkrope"
	"github.com/megatrain/mtc/runtime/ops/relu2"
	"github.com/megatrain/mtc/runtime/ops/rmsnorm"
	"github.com/megatrain/mtc/runtime/ops/rope"
	"github.com/megatrain/mtc/runtime/ops/silu"
	"github.com/megatrain/mtc/runtime/ops/softcap"
	"github.com/megatrain/mtc/runtime/ops/swiglu"
	"github.com/megatrain/mtc/runtime/plan"
	"github.com/megatrain/mtc/runtime/tensor"
)

// rowwise are the kernels that memory bounds, at the widths of a layer.
func (s sizes) rowwise(act tensor.DType) []kase {
	out := s.norms(act)
	out = append(out, s.pairs(act)...)
	out = append(out, s.turns(act, qkrope.None)...)
	out = append(out, s.turns(act, qkrope.After)...)
	return append(out, s.ends(act)...)
}

func (s sizes) norms(act tensor.DType) []kase {
	r, d := s.rows(), s.d
	rms := call(rmsnorm.Def, act, s, map[string]int{"x": d}, nil)
	ln := call(layernorm.Def, act, s, map[string]int{"x": d}, nil)
	return []kase{
		s.make(rms, "Forward", func(m *memory) func(device.Queue) {
			a := rmsnorm.ForwardArgs{X: m.acts(r * d), Y: m.old(r * d), Weight: m.old(d), Inv: m.oldF32(r), Rows: r, D: d, Per: d, Eps: 1e-6}
			return func(q device.Queue) { rmsnorm.Forward(q, a) }
		}),
		s.make(rms, "Backward", func(m *memory) func(device.Queue) {
			dx := m.acts(r * d)
			a := rmsnorm.BackwardArgs{
				X: m.old(r * d), DY: m.acts(r * d), AddDX: dx, DX: dx, Weight: m.old(d), Inv: m.oldF32(r), DWeight: m.oldF32(d),
				Rows: r, D: d, Per: d, Eps: 1e-6,
			}
			return func(q device.Queue) { rmsnorm.Backward(q, a) }
		}),
		s.make(ln, "Forward", func(m *memory) func(device.Queue) {
			a := layernorm.ForwardArgs{X: m.acts(r * d), Y: m.old(r * d), Weight: m.old(d), Bias: m.old(d), Mean: m.oldF32(r), Inv: m.oldF32(r), Rows: r, D: d, Eps: 1e-5}
			return func(q device.Queue) { layernorm.Forward(q, a) }
		}),
		s.make(ln, "Backward", func(m *memory) func(device.Queue) {
			dx := m.acts(r * d)
			a := layernorm.BackwardArgs{
				X: m.old(r * d), DY: m.acts(r * d), AddDX: dx, DX: dx, Weight: m.old(d), Mean: m.oldF32(r), Inv: m.oldF32(r),
				DWeight: m.oldF32(d), DBias: m.oldF32(d), Rows: r, D: d, Eps: 1e-5,
			}
			return func(q device.Queue) { layernorm.Backward(q, a) }
		}),
	}
}

// pairs are elementwise kernels and the turning of heads.
func (s sizes) pairs(act tensor.DType) []kase {
	r, d, f := s.rows(), s.d, s.f
	x := map[string]int{"x": f}
	same := call(opcopy.Def, act, s, map[string]int{"x": d}, nil)
	capped := call(softcap.Def, act, s, map[string]int{"x": d}, map[string]op.Value{"cap": *op.FloatValue(15)})
	sum := call(add.Def, act, s, map[string]int{"a": d, "b": d}, nil)
	turn := call(rope.Def, act, s, map[string]int{"x": s.heads * s.hd}, map[string]op.Value{"hd": *op.IntValue(int64(s.hd))})
	glu := call(swiglu.Def, act, s, map[string]int{"gate": f, "up": f}, nil)
	heads := s.heads * s.hd
	out := []kase{
		s.make(sum, "Forward", func(m *memory) func(device.Queue) {
			a := add.ForwardArgs{A: m.old(r * d), B: m.acts(r * d), Y: m.old(r * d), Rows: r, D: d}
			return func(q device.Queue) { add.Forward(q, a) }
		}),
		s.make(same, "Forward", func(m *memory) func(device.Queue) {
			a := opcopy.ForwardArgs{X: m.acts(r * d), Y: m.old(r * d), Rows: r, D: d}
			return func(q device.Queue) { opcopy.Forward(q, a) }
		}),
		s.make(capped, "Forward", func(m *memory) func(device.Queue) {
			a := softcap.ForwardArgs{X: m.acts(r * d), Y: m.old(r * d), Rows: r, D: d, Cap: 15}
			return func(q device.Queue) { softcap.Forward(q, a) }
		}),
		s.make(capped, "Backward", func(m *memory) func(device.Queue) {
			a := softcap.BackwardArgs{Y: m.old(r * d), DY: m.acts(r * d), DX: m.acts(r * d), Rows: r, D: d, Cap: 15}
			return func(q device.Queue) { softcap.Backward(q, a) }
		}),
		s.make(turn, "Forward", func(m *memory) func(device.Queue) {
			a := rope.ForwardArgs{X: m.acts(r * heads), Y: m.old(r * heads), CS: m.f32(s.t * s.hd), Rows: r, Seq: s.t, D: heads, HD: s.hd}
			return func(q device.Queue) { rope.Forward(q, a) }
		}),
		s.make(turn, "Backward", func(m *memory) func(device.Queue) {
			a := rope.BackwardArgs{DY: m.acts(r * heads), DX: m.acts(r * heads), CS: m.f32(s.t * s.hd), Rows: r, Seq: s.t, D: heads, HD: s.hd}
			return func(q device.Queue) { rope.Backward(q, a) }
		}),
		s.make(glu, "Forward", func(m *memory) func(device.Queue) {
			a := swiglu.ForwardArgs{Gate: m.acts(r * f), UP: m.acts(r * f), Y: m.old(r * f), Rows: r, D: f}
			return func(q device.Queue) { swiglu.Forward(q, a) }
		}),
		s.make(glu, "Backward", func(m *memory) func(device.Queue) {
			a := swiglu.BackwardArgs{Gate: m.old(r * f), UP: m.old(r * f), DY: m.acts(r * f), DGate: m.acts(r * f), DUP: m.acts(r * f), Rows: r, D: f}
			return func(q device.Queue) { swiglu.Backward(q, a) }
		}),
	}
	unary := func(def *op.Def, forward, backward func(q device.Queue, x, y, dy, dx device.Ptr)) {
		c := call(def, act, s, x, nil)
		out = append(out,
			s.make(c, "Forward", func(m *memory) func(device.Queue) {
				x, y := m.acts(r*f), m.old(r*f)
				return func(q device.Queue) { forward(q, x, y, device.Ptr{}, device.Ptr{}) }
			}),
			s.make(c, "Backward", func(m *memory) func(device.Queue) {
				x, dy, dx := m.old(r*f), m.acts(r*f), m.acts(r*f)
				return func(q device.Queue) { backward(q, x, device.Ptr{}, dy, dx) }
			}))
	}
	unary(gelu.Def,
		func(q device.Queue, x, y, _, _ device.Ptr) {
			gelu.Forward(q, gelu.ForwardArgs{X: x, Y: y, Rows: r, D: f})
		},
		func(q device.Queue, x, _, dy, dx device.Ptr) {
			gelu.Backward(q, gelu.BackwardArgs{X: x, DY: dy, DX: dx, Rows: r, D: f})
		})
	unary(silu.Def,
		func(q device.Queue, x, y, _, _ device.Ptr) {
			silu.Forward(q, silu.ForwardArgs{X: x, Y: y, Rows: r, D: f})
		},
		func(q device.Queue, x, _, dy, dx device.Ptr) {
			silu.Backward(q, silu.BackwardArgs{X: x, DY: dy, DX: dx, Rows: r, D: f})
		})
	unary(relu2.Def,
		func(q device.Queue, x, y, _, _ device.Ptr) {
			relu2.Forward(q, relu2.ForwardArgs{X: x, Y: y, Rows: r, D: f})
		},
		func(q device.Queue, x, _, dy, dx device.Ptr) {
			relu2.Backward(q, relu2.BackwardArgs{X: x, DY: dy, DX: dx, Rows: r, D: f})
		})
	return out
}

// turns are the turning of q and k in one launch, with the norms of their heads or without.
func (s sizes) turns(act tensor.DType, norm int) []kase {
	r, hd, heads, kv := s.rows(), s.hd, s.heads, s.kv
	like := call(rope.Def, act, s, map[string]int{"x": heads * hd}, map[string]op.Value{"hd": *op.IntValue(int64(hd))})
	c := qkrope.New(like, qkrope.Sides{Heads: int64(heads), KV: int64(kv), HD: int64(hd), Norm: int64(norm), Eps: 1e-6})
	forward := s.make(c, "Forward", func(m *memory) func(device.Queue) {
		a := qkrope.ForwardArgs{
			Q: m.acts(r * heads * hd), K: m.acts(r * kv * hd), CS: m.f32(s.t * hd), YQ: m.old(r * heads * hd), YK: m.old(r * kv * hd),
			Rows: r, Seq: s.t, Heads: heads, KV: kv, HD: hd, Norm: norm, Eps: 1e-6,
		}
		if norm != qkrope.None {
			a.Invq, a.Invk = m.oldF32(r*heads), m.oldF32(r*kv)
		}
		return func(q device.Queue) { qkrope.Forward(q, a) }
	})
	backward := s.make(c, "Backward", func(m *memory) func(device.Queue) {
		a := qkrope.BackwardArgs{
			DYQ: m.acts(r * heads * hd), DYK: m.acts(r * kv * hd), CS: m.f32(s.t * hd), DQ: m.acts(r * heads * hd), DK: m.acts(r * kv * hd),
			Rows: r, Seq: s.t, Heads: heads, KV: kv, HD: hd, Norm: norm, Eps: 1e-6,
		}
		if norm != qkrope.None {
			a.Q, a.K, a.Invq, a.Invk = m.old(r*heads*hd), m.old(r*kv*hd), m.oldF32(r*heads), m.oldF32(r*kv)
		}
		return func(q device.Queue) { qkrope.Backward(q, a) }
	})
	if norm != qkrope.None {
		forward.kernel += op.WithNorm
		backward.kernel += op.WithNorm
	}
	return []kase{forward, backward}
}

// ends are the embedding, a bias, and the loss over a chunk of logits.
func (s sizes) ends(act tensor.DType) []kase {
	r, d, v := s.rows(), s.d, s.v
	table := call(embed.Def, act, s, map[string]int{"ids": 0}, map[string]op.Value{"rows": *op.IntValue(int64(v)), "dim": *op.IntValue(int64(d))})
	biased := call(linear.Def, act, s, map[string]int{"x": d}, map[string]op.Value{"out": *op.IntValue(int64(d)), "bias": *op.BoolValue(true)})
	c := s
	c.b, c.t = 1, min(r, 2048)
	if act == tensor.F32 {
		c.t = min(r, 256)
	}
	n := c.rows()
	loss := call(crossentropy.Def, act, c, map[string]int{"logits": v, "targets": 0}, nil)
	scalars := make([]float64, plan.NumScalars)
	scalars[plan.ScalarInvTokens] = 1.0 / 1024
	return []kase{
		s.make(table, "Forward", func(m *memory) func(device.Queue) {
			a := embed.ForwardArgs{Ids: m.i32(ids(r, v)), Weight: m.old(v * d), Y: m.old(r * d), Rows: r, V: v, D: d}
			return func(q device.Queue) { embed.Forward(q, a) }
		}),
		s.make(table, "BackwardWeight", func(m *memory) func(device.Queue) {
			a := embed.BackwardWeightArgs{Ids: m.i32(ids(r, v)), DY: m.acts(r * d), DWeight: m.oldF32(v * d), Rows: r, V: v, D: d}
			return func(q device.Queue) { embed.BackwardWeight(q, a) }
		}),
		s.make(biased, "BackwardBias", func(m *memory) func(device.Queue) {
			a := linear.BackwardBiasArgs{DY: m.acts(r * d), DBias: m.oldF32(d), Rows: r, In: d, Out: d}
			return func(q device.Queue) { linear.BackwardBias(q, a) }
		}),
		c.make(loss, "Loss", func(m *memory) func(device.Queue) {
			x := m.acts(n * v)
			a := crossentropy.LossArgs{Logits: x, Targets: m.i32(ids(n, v)), Scalars: m.f64(scalars...), DLogits: x, Partials: m.f64(0, 0), Rows: n, V: v}
			return func(q device.Queue) { crossentropy.Loss(q, a) }
		}),
	}
}
