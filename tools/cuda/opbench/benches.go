//go:build cuda

package main

import (
	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/ops/add"
	"github.com/megatrain/mtc/runtime/ops/copy"
	"github.com/megatrain/mtc/runtime/ops/crossentropy"
	"github.com/megatrain/mtc/runtime/ops/embed"
	"github.com/megatrain/mtc/runtime/ops/fill"
	"github.com/megatrain/mtc/runtime/ops/gelu"
	"github.com/megatrain/mtc/runtime/ops/layernorm"
	"github.com/megatrain/mtc/runtime/ops/linear"
	"github.com/megatrain/mtc/runtime/ops/mul"
	"github.com/megatrain/mtc/runtime/ops/relu2"
	"github.com/megatrain/mtc/runtime/ops/rmsnorm"
	"github.com/megatrain/mtc/runtime/ops/rope"
	"github.com/megatrain/mtc/runtime/ops/sigmoid"
	"github.com/megatrain/mtc/runtime/ops/silu"
	"github.com/megatrain/mtc/runtime/ops/softcap"
	"github.com/megatrain/mtc/runtime/ops/squares"
	"github.com/megatrain/mtc/runtime/ops/swiglu"
	"github.com/megatrain/mtc/runtime/optim"
	"github.com/megatrain/mtc/runtime/plan"
)

// bench is a kernel with the bytes that it must move: each operand read or written once.
type bench struct {
	name  string
	bytes int64
	flops float64 // of a matrix product
	setup func() func(set int)
}

// unary makes benches of y = f(x) and of its gradient over rows of d.
func unary(m *memory, name string, n int64, forward func(x, y device.Ptr), backward func(x, dy, dx device.Ptr)) []bench {
	size := n * m.act
	return []bench{
		{name: name, bytes: 2 * size, setup: func() func(int) {
			x, y := m.turns(size), m.turns(size)
			return func(i int) { forward(x.at(i), y.at(i)) }
		}},
		{name: name + ", backward", bytes: 3 * size, setup: func() func(int) {
			x, dy, dx := m.turns(size), m.turns(size), m.turns(size)
			return func(i int) { backward(x.at(i), dy.at(i), dx.at(i)) }
		}},
	}
}

// copyName is the copy that kernels are measured by.
const copyName = "copy by the driver"

// benches lists the kernels; the first is the copy that the others are measured by.
func benches(s sizes, m *memory) []bench {
	q := m.queue
	large := min(m.size/4, 2<<30)
	all := []bench{{name: copyName, bytes: 2 * large, setup: func() func(int) {
		from, to := m.bytes(large), m.bytes(large)
		return func(int) { q.Copy(to, from, large) }
	}}}
	all = append(all, elements(s, m)...)
	all = append(all, rows(s, m)...)
	all = append(all, ends(s, m)...)
	all = append(all, updates(s, m)...)
	all = append(all, products(s, m)...)
	return append(all, groupedProducts(m, s.rows < 1024)...)
}

func elements(s sizes, m *memory) []bench {
	q, r, d, f := m.queue, s.rows, s.d, s.f
	narrow, wide := int64(r)*int64(d)*m.act, int64(r)*int64(f)*m.act
	all := []bench{
		// What every kernel costs besides its bytes.
		{name: "a launch", bytes: 4, setup: func() func(int) {
			y := m.f32(1)
			return func(i int) { fill.Forward(q, fill.ForwardArgs{Y: y, N: 1}) }
		}},
		{name: "copy D", bytes: 2 * narrow, setup: func() func(int) {
			x, y := m.turns(narrow), m.turns(narrow)
			return func(i int) { copy.Forward(q, copy.ForwardArgs{X: x.at(i), Y: y.at(i), Rows: r, D: d}) }
		}},
		{name: "add D", bytes: 3 * narrow, setup: func() func(int) {
			a, b, y := m.turns(narrow), m.turns(narrow), m.turns(narrow)
			return func(i int) { add.Forward(q, add.ForwardArgs{A: a.at(i), B: b.at(i), Y: y.at(i), Rows: r, D: d}) }
		}},
		{name: "add D in place", bytes: 3 * narrow, setup: func() func(int) {
			a, b := m.turns(narrow), m.turns(narrow)
			return func(i int) { add.Forward(q, add.ForwardArgs{A: a.at(i), B: b.at(i), Y: a.at(i), Rows: r, D: d}) }
		}},
		{name: "mul F", bytes: 3 * wide, setup: func() func(int) {
			a, b, y := m.turns(wide), m.turns(wide), m.turns(wide)
			return func(i int) { mul.Forward(q, mul.ForwardArgs{A: a.at(i), B: b.at(i), Y: y.at(i), Rows: r, D: f}) }
		}},
		{name: "swiglu F", bytes: 3 * wide, setup: func() func(int) {
			a, b, y := m.turns(wide), m.turns(wide), m.turns(wide)
			return func(i int) {
				swiglu.Forward(q, swiglu.ForwardArgs{Gate: a.at(i), UP: b.at(i), Y: y.at(i), Rows: r, D: f})
			}
		}},
		{name: "swiglu F, backward", bytes: 5 * wide, setup: func() func(int) {
			a, b, dy, da, db := m.turns(wide), m.turns(wide), m.turns(wide), m.turns(wide), m.turns(wide)
			return func(i int) {
				swiglu.Backward(q, swiglu.BackwardArgs{Gate: a.at(i), UP: b.at(i), DY: dy.at(i), DGate: da.at(i), DUP: db.at(i), Rows: r, D: f})
			}
		}},
		{name: "fill f32", bytes: 2 * wide, setup: func() func(int) {
			y := m.turns(2 * wide)
			return func(i int) { fill.Forward(q, fill.ForwardArgs{Y: y.at(i), N: int(2 * wide / 4)}) }
		}},
	}
	n := int64(r) * int64(f)
	all = append(all, unary(m, "silu F", n,
		func(x, y device.Ptr) { silu.Forward(q, silu.ForwardArgs{X: x, Y: y, Rows: r, D: f}) },
		func(x, dy, dx device.Ptr) { silu.Backward(q, silu.BackwardArgs{X: x, DY: dy, DX: dx, Rows: r, D: f}) })...)
	for _, exact := range []bool{false, true} {
		name := map[bool]string{false: "gelu F", true: "gelu F exact"}[exact]
		all = append(all, unary(m, name, n,
			func(x, y device.Ptr) { gelu.Forward(q, gelu.ForwardArgs{X: x, Y: y, Rows: r, D: f, Exact: exact}) },
			func(x, dy, dx device.Ptr) {
				gelu.Backward(q, gelu.BackwardArgs{X: x, DY: dy, DX: dx, Rows: r, D: f, Exact: exact})
			})...)
	}
	all = append(all, unary(m, "relu2 F", n,
		func(x, y device.Ptr) { relu2.Forward(q, relu2.ForwardArgs{X: x, Y: y, Rows: r, D: f}) },
		func(x, dy, dx device.Ptr) { relu2.Backward(q, relu2.BackwardArgs{X: x, DY: dy, DX: dx, Rows: r, D: f}) })...)
	all = append(all, unary(m, "sigmoid F", n,
		func(x, y device.Ptr) { sigmoid.Forward(q, sigmoid.ForwardArgs{X: x, Y: y, Rows: r, D: f}) },
		func(x, dy, dx device.Ptr) {
			sigmoid.Backward(q, sigmoid.BackwardArgs{Y: x, DY: dy, DX: dx, Rows: r, D: f})
		})...)
	return append(all, unary(m, "softcap F", n,
		func(x, y device.Ptr) { softcap.Forward(q, softcap.ForwardArgs{X: x, Y: y, Rows: r, D: f, Cap: 30}) },
		func(x, dy, dx device.Ptr) {
			softcap.Backward(q, softcap.BackwardArgs{Y: x, DY: dy, DX: dx, Rows: r, D: f, Cap: 30})
		})...)
}

func rows(s sizes, m *memory) []bench {
	q, r := m.queue, s.rows
	var all []bench
	norm := func(name string, d, per int) {
		size := int64(r) * int64(d) * m.act
		all = append(all, bench{name: "rmsnorm " + name, bytes: 2 * size, setup: func() func(int) {
			x, y, w, inv := m.turns(size), m.turns(size), m.acts(per), m.f32(int64(r*d/per))
			return func(i int) {
				rmsnorm.Forward(q, rmsnorm.ForwardArgs{X: x.at(i), Y: y.at(i), Weight: w, Inv: inv, Rows: r, D: d, Per: per, Eps: 1e-6})
			}
		}}, bench{name: "rmsnorm " + name + ", backward", bytes: 4 * size, setup: func() func(int) {
			x, dy, dx, w, inv, dw := m.turns(size), m.turns(size), m.turns(size), m.acts(per), m.f32(int64(r*d/per)), m.f32(int64(per))
			return func(i int) {
				rmsnorm.Backward(q, rmsnorm.BackwardArgs{X: x.at(i), DY: dy.at(i), AddDX: dx.at(i), DX: dx.at(i), Weight: w, Inv: inv, DWeight: dw, Rows: r, D: d, Per: per, Eps: 1e-6})
			}
		}})
	}
	norm("D", s.d, s.d)
	norm("heads", s.d, 128)
	for _, d := range []int{768, s.d} {
		name := map[bool]string{true: "layernorm 768", false: "layernorm D"}[d == 768]
		r := r * max(1, s.d/768*768/d)
		size := int64(r) * int64(d) * m.act
		all = append(all, bench{name: name, bytes: 2 * size, setup: func() func(int) {
			x, y, w, b, mean, inv := m.turns(size), m.turns(size), m.acts(d), m.acts(d), m.f32(int64(r)), m.f32(int64(r))
			return func(i int) {
				layernorm.Forward(q, layernorm.ForwardArgs{X: x.at(i), Y: y.at(i), Weight: w, Bias: b, Mean: mean, Inv: inv, Rows: r, D: d, Eps: 1e-5})
			}
		}}, bench{name: name + ", backward", bytes: 4 * size, setup: func() func(int) {
			x, dy, dx, w, mean, inv := m.turns(size), m.turns(size), m.turns(size), m.acts(d), m.f32(int64(r)), m.f32(int64(r))
			dw, db := m.f32(int64(d)), m.f32(int64(d))
			return func(i int) {
				layernorm.Backward(q, layernorm.BackwardArgs{X: x.at(i), DY: dy.at(i), AddDX: dx.at(i), DX: dx.at(i), Weight: w, Mean: mean, Inv: inv, DWeight: dw, DBias: db, Rows: r, D: d})
			}
		}})
	}
	for _, d := range []int{s.d, 512} {
		name := map[bool]string{true: "rope D", false: "rope 512"}[d == s.d]
		size := int64(r) * int64(d) * m.act
		all = append(all, bench{name: name, bytes: 2 * size, setup: func() func(int) {
			x, y, cs := m.turns(size), m.turns(size), m.f32(int64(s.seq)*128)
			return func(i int) {
				rope.Forward(q, rope.ForwardArgs{X: x.at(i), Y: y.at(i), CS: cs, Rows: r, Seq: s.seq, D: d, HD: 128})
			}
		}}, bench{name: name + " in place", bytes: 2 * size, setup: func() func(int) {
			x, cs := m.turns(size), m.f32(int64(s.seq)*128)
			return func(i int) {
				rope.Backward(q, rope.BackwardArgs{DY: x.at(i), DX: x.at(i), CS: cs, Rows: r, Seq: s.seq, D: d, HD: 128})
			}
		}})
	}
	return all
}

func ends(s sizes, m *memory) []bench {
	q, r, d := m.queue, s.rows, s.d
	size := int64(r) * int64(d) * m.act
	table := int64(s.v) * int64(d)
	all := []bench{
		{name: "embed D", bytes: 2 * size, setup: func() func(int) {
			tokens, w, y := m.i32(ids(r, s.v)), m.bytes(table*m.act), m.turns(size)
			return func(i int) {
				embed.Forward(q, embed.ForwardArgs{Ids: tokens, Weight: w, Y: y.at(i), Rows: r, V: s.v, D: d})
			}
		}},
		{name: "linear D, bias", bytes: size, setup: func() func(int) {
			dy, db := m.turns(size), m.f32(int64(d))
			return func(i int) {
				linear.BackwardBias(q, linear.BackwardBiasArgs{DY: dy.at(i), DBias: db, Rows: r, In: d, Out: d})
			}
		}},
	}
	for _, n := range []int{r, 8 * r} {
		name := map[bool]string{true: "embed D, table", false: "embed D, table, 8 x rows"}[n == r]
		tokens := ids(n, s.v)
		dy := int64(n) * int64(d) * m.act
		all = append(all, bench{name: name, bytes: dy + 4*table, setup: func() func(int) {
			p, g, dw := m.i32(tokens), m.turns(dy), m.f32(table)
			return func(i int) {
				embed.BackwardWeight(q, embed.BackwardWeightArgs{Ids: p, DY: g.at(i), DWeight: dw, Rows: n, V: s.v, D: d})
			}
		}}, bench{name: name + ", added in place", bytes: dy + 8*int64(distinct(tokens))*int64(d), setup: func() func(int) {
			p, g, dw := m.i32(tokens), m.turns(dy), m.f32(table)
			return func(i int) {
				embed.BackwardWeight(q, embed.BackwardWeightArgs{Ids: p, DY: g.at(i), AddDWeight: dw, DWeight: dw, Rows: n, V: s.v, D: d})
			}
		}})
	}
	for _, v := range []int{s.v, 50257} {
		name := map[bool]string{true: "crossentropy V", false: "crossentropy 50257"}[v == s.v]
		logits := int64(s.chunk) * int64(v) * m.act
		scalars := make([]float64, plan.NumScalars)
		scalars[plan.ScalarInvTokens] = 1.0 / 524288
		all = append(all, bench{name: name + ", loss in place", bytes: 2 * logits, setup: func() func(int) {
			x, t, sc, p := m.turns(logits), m.i32(ids(s.chunk, v)), m.f64(scalars...), m.f64(0, 0)
			return func(i int) {
				crossentropy.Loss(q, crossentropy.LossArgs{Logits: x.at(i), Targets: t, Scalars: sc, DLogits: x.at(i), Partials: p, Rows: s.chunk, V: v})
			}
		}}, bench{name: name + ", eval", bytes: logits, setup: func() func(int) {
			x, t, p := m.turns(logits), m.i32(ids(s.chunk, v)), m.f64(0, 0)
			return func(i int) {
				crossentropy.Eval(q, crossentropy.EvalArgs{Logits: x.at(i), Targets: t, Partials: p, Rows: s.chunk, V: v})
			}
		}})
	}
	return all
}

func distinct(v []int32) int {
	seen := map[int32]bool{}
	for _, x := range v {
		seen[x] = true
	}
	return len(seen)
}

func updates(s sizes, m *memory) []bench {
	q, n := m.queue, s.slab
	scalars := make([]float64, plan.NumScalars)
	scalars[plan.ScalarStep], scalars[plan.ScalarLR], scalars[plan.ScalarMaxNorm], scalars[plan.ScalarClip] = 10, 1e-5, 1, 1
	return []bench{
		{name: "squared norm", bytes: 4 * n, setup: func() func(int) {
			g, parts, norm := m.f32(n), m.bytes(8*plan.SquaresBlocks(n)), m.f64(0)
			return func(int) { squares.Norm(q, squares.NormArgs{Grad: g, Parts: parts, Norm: norm, Elems: n}) }
		}},
		{name: "accumulate", bytes: 12 * n, setup: func() func(int) {
			a, b := m.f32(n), m.f32(n)
			return func(int) { optim.Accumulate(q, optim.AccumulateArgs{Dst: a, Src: b, Elems: n}) }
		}},
		{name: "adamw f32", bytes: 28 * n, setup: func() func(int) {
			a := optim.AdamWArgs{Weight: m.f32(n), Grad: m.f32(n), M: m.f32(n), V: m.f32(n), Scalars: m.f64(scalars...), Elems: n, Decay: n,
				Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1}
			fill.Forward(q, fill.ForwardArgs{Y: a.V, N: int(n), Value: 0.5})
			return func(int) { optim.AdamW(q, a) }
		}},
		{name: "adamw split", bytes: 28 * n, setup: func() func(int) {
			a := optim.AdamWSplitArgs{Hi: m.bytes(2 * n), Lo: m.bytes(2 * n), Grad: m.f32(n), M: m.f32(n), V: m.f32(n), Scalars: m.f64(scalars...), Elems: n, Decay: n,
				Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1}
			fill.Forward(q, fill.ForwardArgs{Y: a.V, N: int(n), Value: 0.5})
			return func(int) { optim.AdamWSplit(q, a) }
		}},
	}
}

func products(s sizes, m *memory) []bench {
	q, r, in, out := m.queue, s.rows, s.d, s.f
	flops := 2 * float64(r) * float64(in) * float64(out)
	return []bench{
		{name: "linear D to F", flops: flops, setup: func() func(int) {
			x, w, y := m.acts(r*in), m.acts(in*out), m.acts(r*out)
			return func(int) { linear.Forward(q, linear.ForwardArgs{X: x, Weight: w, Y: y, Rows: r, In: in, Out: out}) }
		}},
		{name: "linear D to F, input", flops: flops, setup: func() func(int) {
			dx, w, dy := m.acts(r*in), m.acts(in*out), m.acts(r*out)
			return func(int) {
				linear.BackwardInput(q, linear.BackwardInputArgs{DX: dx, Weight: w, DY: dy, Rows: r, In: in, Out: out})
			}
		}},
		{name: "linear D to F, weight, added", flops: flops, setup: func() func(int) {
			x, dw, dy := m.acts(r*in), m.f32(int64(in)*int64(out)), m.acts(r*out)
			return func(int) {
				linear.BackwardWeight(q, linear.BackwardWeightArgs{X: x, AddDWeight: dw, DWeight: dw, DY: dy, Rows: r, In: in, Out: out})
			}
		}},
	}
}
