//go:build cuda

package main

import (
	"fmt"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/crossentropy"
	"github.com/megatrain/mtc/runtime/ops/gelu"
	"github.com/megatrain/mtc/runtime/ops/layernorm"
	"github.com/megatrain/mtc/runtime/ops/linear"
	"github.com/megatrain/mtc/runtime/optim"
	"github.com/megatrain/mtc/runtime/plan"
)

// small times what GPT-2 124M is made of, at the micro-batches of its two benchmarks.
func small(m *memory, emulate bool) []bench {
	d, v, pitch := 768, 50257, 50304
	sizes := []int{8192, 65536}
	if emulate {
		d, v, pitch, sizes = 64, 101, 128, []int{64}
	}
	var all []bench
	for _, rows := range sizes {
		all = append(all, smallRows(m, rows, d)...)
		all = append(all, smallProducts(m, rows, d)...)
		all = append(all, headProducts(m, min(rows, 16384), d, v, pitch)...)
	}
	return append(all, headProducts(m, sizes[0], d, v, v)...)
}

// smallRows are kernels bound by memory.
func smallRows(m *memory, rows, d int) []bench {
	q, size := m.queue, int64(rows)*int64(d)*m.act
	name := func(s string) string { return fmt.Sprintf("%s %dx%d", s, rows, d) }
	stats := func() (mean, inv device.Ptr) { return m.f32(int64(rows)), m.f32(int64(rows)) }
	return []bench{
		{name: name("layernorm"), bytes: 2 * size, setup: func() func(int) {
			x, y, w, b := m.turns(size), m.turns(size), m.acts(d), m.acts(d)
			mean, inv := stats()
			return func(i int) {
				layernorm.Forward(q, layernorm.ForwardArgs{X: x.at(i), Y: y.at(i), Weight: w, Bias: b, Mean: mean, Inv: inv, Rows: rows, D: d, Eps: 1e-5})
			}
		}},
		{name: name("layernorm, backward"), bytes: 4 * size, setup: func() func(int) {
			x, dy, dx, w := m.turns(size), m.turns(size), m.turns(size), m.acts(d)
			mean, inv := stats()
			dw, db := m.f32(int64(d)), m.f32(int64(d))
			return func(i int) {
				layernorm.Backward(q, layernorm.BackwardArgs{X: x.at(i), DY: dy.at(i), AddDX: dx.at(i), DX: dx.at(i), Weight: w, Mean: mean, Inv: inv, DWeight: dw, DBias: db, Rows: rows, D: d})
			}
		}},
		{name: name("linear bias"), bytes: size, setup: func() func(int) {
			dy, db := m.turns(size), m.f32(int64(d))
			return func(i int) {
				linear.BackwardBias(q, linear.BackwardBiasArgs{DY: dy.at(i), DBias: db, Rows: rows, In: d, Out: d})
			}
		}},
		{name: name("gelu 4 x"), bytes: 8 * size, setup: func() func(int) {
			x, y := m.turns(4*size), m.turns(4*size)
			return func(i int) { gelu.Forward(q, gelu.ForwardArgs{X: x.at(i), Y: y.at(i), Rows: rows, D: 4 * d}) }
		}},
		{name: name("gelu, backward 4 x"), bytes: 12 * size, setup: func() func(int) {
			x, dy := m.turns(4*size), m.turns(4*size)
			return func(i int) {
				gelu.Backward(q, gelu.BackwardArgs{X: x.at(i), DY: dy.at(i), DX: dy.at(i), Rows: rows, D: 4 * d})
			}
		}},
		{name: fmt.Sprintf("adamw split, a layer of %d", d), bytes: 28 * 12 * int64(d) * int64(d), setup: func() func(int) {
			n := 12 * int64(d) * int64(d)
			scalars := make([]float64, plan.NumScalars)
			scalars[plan.ScalarStep], scalars[plan.ScalarLR], scalars[plan.ScalarMaxNorm], scalars[plan.ScalarClip] = 10, 1e-5, 1, 1
			s := m.f64(scalars...)
			hi, lo, g, mm, vv := m.turns(2*n), m.turns(2*n), m.turns(4*n), m.turns(4*n), m.turns(4*n)
			return func(i int) {
				optim.AdamWSplit(q, optim.AdamWSplitArgs{Hi: hi.at(i), Lo: lo.at(i), Grad: g.at(i), M: mm.at(i), V: vv.at(i), Scalars: s, Elems: n, Decay: n,
					Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1})
			}
		}},
	}
}

// smallProducts are those of a layer: in each form, with what rides along.
func smallProducts(m *memory, rows, d int) []bench {
	q := m.queue
	var all []bench
	for _, s := range []struct{ in, out int }{{d, d}, {d, 4 * d}, {4 * d, d}} {
		in, out := s.in, s.out
		name := fmt.Sprintf("linear %d: %d to %d", rows, in, out)
		flops := 2 * float64(rows) * float64(in) * float64(out)
		all = append(all,
			bench{name: name + ", bias", flops: flops, setup: func() func(int) {
				x, w, b, y := m.turns(int64(rows*in)*m.act), m.acts(in*out), m.acts(out), m.turns(int64(rows*out)*m.act)
				return func(i int) {
					linear.Forward(q, linear.ForwardArgs{X: x.at(i), Weight: w, Bias: b, Y: y.at(i), Rows: rows, In: in, Out: out})
				}
			}},
			bench{name: name + ", bias and residual", flops: flops, setup: func() func(int) {
				x, w, b, y := m.turns(int64(rows*in)*m.act), m.acts(in*out), m.acts(out), m.turns(int64(rows*out)*m.act)
				return func(i int) {
					linear.Forward(q, linear.ForwardArgs{X: x.at(i), Weight: w, Bias: b, AddY: y.at(i + 1), Y: y.at(i), Rows: rows, In: in, Out: out})
				}
			}},
			bench{name: name + ", input", flops: flops, setup: func() func(int) {
				dx, w, dy := m.turns(int64(rows*in)*m.act), m.acts(in*out), m.turns(int64(rows*out)*m.act)
				return func(i int) {
					linear.BackwardInput(q, linear.BackwardInputArgs{DX: dx.at(i), Weight: w, DY: dy.at(i), Rows: rows, In: in, Out: out})
				}
			}},
			bench{name: name + ", weight, added", flops: flops, setup: func() func(int) {
				x, dw, dy := m.turns(int64(rows*in)*m.act), m.f32(int64(in*out)), m.turns(int64(rows*out)*m.act)
				return func(i int) {
					linear.BackwardWeight(q, linear.BackwardWeightArgs{X: x.at(i), AddDWeight: dw, DWeight: dw, DY: dy.at(i), Rows: rows, In: in, Out: out})
				}
			}})
	}
	narrow, wide := int64(rows*d)*m.act, int64(4*rows*d)*m.act
	flops := 8 * float64(rows) * float64(d) * float64(d)
	return append(all,
		bench{name: fmt.Sprintf("linear %d: %d to %d, bias, gelu", rows, d, 4*d), flops: flops, setup: func() func(int) {
			x, w, b, pre, y := m.turns(narrow), m.acts(4*d*d), m.acts(4*d), m.turns(wide), m.turns(wide)
			return func(i int) {
				linear.ForwardGelu(q, linear.ForwardGeluArgs{X: x.at(i), Weight: w, Bias: b, Pre: pre.at(i), Y: y.at(i), Rows: rows, In: d, Out: 4 * d})
			}
		}},
		bench{name: fmt.Sprintf("linear %d: %d to %d, input, gelu", rows, 4*d, d), flops: flops, setup: func() func(int) {
			dx, w, pre, dy := m.turns(wide), m.acts(4*d*d), m.turns(wide), m.turns(narrow)
			return func(i int) {
				linear.BackwardInputGelu(q, linear.BackwardInputGeluArgs{Weight: w, DY: dy.at(i), Pre: pre.at(i), DX: dx.at(i), Rows: rows, In: 4 * d, Out: d})
			}
		}})
}

// headProducts are those of a chunk of logits whose rows lie pitch apart, and their loss.
func headProducts(m *memory, rows, d, v, pitch int) []bench {
	q := m.queue
	name := fmt.Sprintf("head %d: %d to %d in %d", rows, d, v, pitch)
	flops := 2 * float64(rows) * float64(d) * float64(v)
	logits := int64(rows) * int64(pitch) * m.act
	scalars := make([]float64, plan.NumScalars)
	scalars[plan.ScalarInvTokens] = 1.0 / 524288
	return []bench{
		{name: name, flops: flops, setup: func() func(int) {
			x, w, y := m.acts(rows*d), m.acts(v*d), m.bytes(logits)
			return func(int) {
				linear.Forward(q, linear.ForwardArgs{X: x, Weight: w, Y: y, Rows: rows, In: d, Out: v, Pitch: pitch})
			}
		}},
		{name: name + ", input", flops: flops, setup: func() func(int) {
			dx, w, dy := m.acts(rows*d), m.acts(v*d), m.bytes(logits)
			return func(int) {
				linear.BackwardInput(q, linear.BackwardInputArgs{DX: dx, Weight: w, DY: dy, Rows: rows, In: d, Out: v, Pitch: pitch})
			}
		}},
		{name: name + ", weight, added", flops: flops, setup: func() func(int) {
			x, dw, dy := m.acts(rows*d), m.f32(int64(v*d)), m.bytes(logits)
			return func(int) {
				linear.BackwardWeight(q, linear.BackwardWeightArgs{X: x, AddDWeight: dw, DWeight: dw, DY: dy, Rows: rows, In: d, Out: v, Pitch: pitch})
			}
		}},
		{name: fmt.Sprintf("crossentropy %d of %d in %d", rows, v, pitch), bytes: 2 * int64(rows) * int64(v) * m.act, setup: func() func(int) {
			x, t, sc, p := m.bytes(logits), m.i32(ids(rows, v)), m.f64(scalars...), m.f64(0, 0)
			return func(int) {
				crossentropy.Loss(q, crossentropy.LossArgs{Logits: x, Targets: t, Scalars: sc, DLogits: x, Partials: p, Rows: rows, V: v, Pitch: pitch})
			}
		}},
	}
}
