package bench

import (
	"math"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/attention"
	"github.com/megatrain/mtc/runtime/ops/linear"
	"github.com/megatrain/mtc/runtime/tensor"
)

// products are the matrix products of a layer and of a chunk of the head, in their three forms.
func (s sizes) products(act tensor.DType) []kase {
	out := s.product(act, s.d, s.d)
	out = append(out, s.product(act, s.d, s.f)...)
	out = append(out, s.product(act, s.f, s.d)...)
	if kv := s.kv * s.hd; kv != s.d {
		out = append(out, s.product(act, s.d, kv)...)
	}
	if act == tensor.F32 && s.d <= 768 { // an adapter's two
		out = append(out, s.product(act, s.d, 16)...)
		out = append(out, s.product(act, 16, s.d)...)
	}
	head := s
	head.b, head.t = 1, min(s.rows(), 2048)
	if act == tensor.F32 {
		head.t = min(s.rows(), 256)
	}
	// The three of a chunk of the head follow each other: its table and its logits were just in use.
	return append(out, head.productOf(act, s.d, s.v, (*memory).acts)...)
}

func (s sizes) product(act tensor.DType, in, out int) []kase {
	return s.productOf(act, in, out, (*memory).old)
}

// productOf is a product, its gradients, and where its weight, its result and what is kept of it lie.
func (s sizes) productOf(act tensor.DType, in, out int, old func(m *memory, n int) device.Ptr) []kase {
	r := s.rows()
	c := call(linear.Def, act, s, map[string]int{"x": in}, map[string]op.Value{"out": *op.IntValue(int64(out))})
	return []kase{
		s.make(c, "Forward", func(m *memory) func(device.Queue) {
			a := linear.ForwardArgs{X: m.acts(r * in), Weight: old(m, in*out), Y: old(m, r*out), Rows: r, In: in, Out: out}
			return func(q device.Queue) { linear.Forward(q, a) }
		}),
		s.make(c, "BackwardInput", func(m *memory) func(device.Queue) {
			dx := m.acts(r * in)
			a := linear.BackwardInputArgs{Weight: old(m, in*out), DY: m.acts(r * out), DX: dx, Rows: r, In: in, Out: out}
			return func(q device.Queue) { linear.BackwardInput(q, a) }
		}),
		s.make(c, "BackwardWeight", func(m *memory) func(device.Queue) {
			dw := m.oldF32(in * out)
			a := linear.BackwardWeightArgs{X: old(m, r*in), DY: m.acts(r * out), DWeight: dw, Rows: r, In: in, Out: out}
			if m.far == nil { // on a CPU a step's first gradient is measured, and cost counts what is read to add to it
				a.AddDWeight = dw
			}
			return func(q device.Queue) { linear.BackwardWeight(q, a) }
		}),
	}
}

// attends is causal attention, forward and backward.
func (s sizes) attends(act tensor.DType) []kase {
	r, q, kv := s.rows(), s.heads*s.hd, s.kv*s.hd
	c := call(&attention.Def, act, s, map[string]int{"q": q, "k": kv, "v": kv}, map[string]op.Value{
		"heads": *op.IntValue(int64(s.heads)), "kv": *op.IntValue(int64(s.kv)), "causal": *op.BoolValue(true),
	})
	scale := float32(1 / math.Sqrt(float64(s.hd)))
	return []kase{
		s.make(c, "Forward", func(m *memory) func(device.Queue) {
			a := attention.ForwardArgs{
				Q: m.acts(r * q), K: m.acts(r * kv), V: m.acts(r * kv), Y: m.old(r * q), Lse: m.oldF32(r * s.heads),
				Batch: s.b, Seq: s.t, Heads: s.heads, KV: s.kv, HD: s.hd, Causal: true, Scale: scale,
			}
			return func(q device.Queue) { attention.Forward(q, a) }
		}),
		s.make(c, "Backward", func(m *memory) func(device.Queue) {
			f := attention.ForwardArgs{
				Q: m.old(r * q), K: m.old(r * kv), V: m.old(r * kv), Y: m.old(r * q), Lse: m.oldF32(r * s.heads),
				Batch: s.b, Seq: s.t, Heads: s.heads, KV: s.kv, HD: s.hd, Causal: true, Scale: scale,
			}
			a := attention.BackwardArgs{
				Q: f.Q, K: f.K, V: f.V, Y: f.Y, Lse: f.Lse, DY: m.acts(r * q), DQ: m.acts(r * q), DK: m.acts(r * kv), DV: m.acts(r * kv),
				Batch: s.b, Seq: s.t, Heads: s.heads, KV: s.kv, HD: s.hd, Causal: true, Scale: scale,
			}
			done := m.far != nil // each of many launches would make them within its time; no sum of theirs is too large
			return func(q device.Queue) {
				if !done { // its sums have to be those of its scores
					attention.Forward(q, f)
					done = true
				}
				attention.Backward(q, a)
			}
		}),
	}
}
