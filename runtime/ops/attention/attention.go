// Package attention is scaled dot-product attention over heads that lie side by side:
//
//	s[b, h, t, u] = q[b, t, h] . k[b, u, g(h)] * scale       g(h) = h / (H/KV)
//	s             = cap * tanh(s / cap)                      when there is a cap
//	p[b, h, t, :] = softmax over the visible u of s[b, h, t, :]
//	y[b, t, h]    = sum over u of p[b, h, t, u] v[b, u, g(h)]
//
// with B sequences of T positions, H query heads and KV key and value heads of hd elements.
// Position u is visible from t when u <= t (causal) and t - u < window (and u - t < window
// when not causal). Where documents share a row, starts[b, t] is the position where the
// document of t begins, and u must lie in the document of t. No T x T matrix exists: keys are taken in blocks with a running maximum
// and sum (Milakov and Gimelshein, arXiv 1805.02867; Dao et al., arXiv 2205.14135). Forward
// keeps the log of the softmax's sum, "lse", from which backward recomputes p.
package attention

import (
	"fmt"
	"math"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// maxHead is the largest head dim; the blocks of the kernels are sized by it.
const maxHead = 1024

// Def declares attention.
var Def = op.Def{
	Name:    "attention",
	Doc:     "softmax attention over heads",
	Formula: "y[b,t,h] = sum_u softmax_u(cap(scale * q[b,t,h] . k[b,u,h*KV/H])) v[b,u,h*KV/H]",
	Example: "a = attention(q: linear(x, D), k: linear(x, D), v: linear(x, D), heads = 4, causal)",
	Params: []op.Param{
		{Name: "q", Kind: op.Tensor, Doc: "queries [B, T, heads * hd]"},
		{Name: "k", Kind: op.Tensor, Doc: "keys [B, T, kv * hd]"},
		{Name: "v", Kind: op.Tensor, Doc: "values [B, T, kv * hd]"},
		{Name: "heads", Kind: op.Int, Doc: "query heads"},
		{Name: "kv", Kind: op.Int, Default: op.None(), Doc: "key and value heads; none: heads"},
		{Name: "causal", Kind: op.Bool, Default: op.BoolValue(false), Doc: "a position sees itself and earlier ones"},
		{Name: "window", Kind: op.Int, Default: op.None(), Doc: "a position sees at most this many positions, its own included"},
		{Name: "cap", Kind: op.Float, Default: op.None(), Doc: "logits become cap * tanh(logits / cap)"},
		{Name: "scale", Kind: op.Float, Default: op.None(), Doc: "factor on the logits; none: 1 / sqrt(hd)"},
	},
	Infer:  infer,
	Causal: "causal",
	// Documents that share a row do not see each other.
	Documents: true,
	Forward: op.WithCost(op.Launch{
		Func: "Forward", Reads: []string{"q", "k", "v"}, Writes: []string{"y", "lse"}, Shape: shaped("forward"),
	}, func(c *op.Call, s op.Sizes) int64 { return 4 * pairFLOPs(c, s) }),
	Backward: []op.Launch{op.WithCost(op.Launch{
		Func:   "Backward",
		Reads:  []string{"q", "k", "v", "y", "lse", "d.y"},
		Writes: []string{"d.q", "d.k", "d.v"},
		Adds:   []string{"d.q", "d.k", "d.v"},
		Shape:  shaped("backward"),
		// Of the kernels for bf16, the largest there are for the head.
		Scratch: func(c *op.Call, s op.Sizes) int64 {
			heads := c.Int("heads")
			a := device.Args{I: [device.MaxInts]int64{s.Batch, s.Seq, 0, heads}}
			if hd := c.In[0].Shape.Last().N / heads; hd%16 != 0 || hd > mmaMaxHead {
				return plainWork(&a)
			}
			return wgmmaWork(&a)
		},
	}, func(c *op.Call, s op.Sizes) int64 { return 10 * pairFLOPs(c, s) })},
	Cached: cached(),
}

// cached takes the new rows of one sequence, stores their keys and values, and attends to
// all positions up to each row's own.
func cached() *op.Launch {
	l := op.WithCost(op.Launch{
		Func:   "ForwardCached",
		Reads:  []string{"q", "k", "v", "kcache", "vcache"},
		Writes: []string{"y", "kcache", "vcache"},
	}, func(c *op.Call, s op.Sizes) int64 { return 4 * pairFLOPs(c, s) })
	return &l
}

// shaped is the shape of a launch over all positions of its sequences.
func shaped(form string) func(c *op.Call, s op.Sizes) op.Shape {
	return func(c *op.Call, s op.Sizes) op.Shape {
		heads := c.Int("heads")
		return op.Shape{Class: op.Attending, Form: form, M: s.Batch * heads, N: s.Seq, K: c.In[0].Shape.Last().N / heads, Count: 1}
	}
}

// pairFLOPs is the number of visible (t, u) pairs of all heads times hd.
func pairFLOPs(c *op.Call, s op.Sizes) int64 {
	return s.Batch * c.In[0].Shape.Last().N * visiblePairs(s.Seq, c.Bool("causal"), c.Int("window"))
}

// visiblePairs counts the pairs (t, u) in [0, n)^2 that see each other; window 0 is none.
func visiblePairs(n int64, causal bool, window int64) int64 {
	if window == 0 || window > n {
		window = n
	}
	// Below the diagonal: row t sees min(t+1, window) positions, its own included.
	below := window*(window+1)/2 + (n-window)*window
	if causal {
		return below
	}
	return 2*below - n
}

func infer(c *op.Call) error {
	var in [3]tensor.Type
	for i, name := range []string{"q", "k", "v"} {
		t, err := c.Activation(name)
		if err != nil {
			return err
		}
		in[i] = t
	}
	for _, name := range []string{"heads", "kv", "window"} {
		if c.Has(name) {
			if err := c.Positive(name); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{"cap", "scale"} {
		if c.Has(name) {
			if err := c.PositiveFloat(name); err != nil {
				return err
			}
		}
	}
	q, heads := in[0], c.Int("heads")
	kv := heads
	if c.Has("kv") {
		kv = c.Int("kv")
	}
	if heads%kv != 0 {
		return &op.ArgError{Arg: "kv", Want: fmt.Sprintf("a divisor of heads = %d", heads), Got: fmt.Sprint(kv)}
	}
	width := q.Shape.Last().N
	if width%heads != 0 {
		return &op.ArgError{Arg: "q", Want: fmt.Sprintf("a last dim that heads = %d divides", heads), Got: q.String()}
	}
	hd := width / heads
	if hd > maxHead {
		return &op.ArgError{Arg: "heads", Want: fmt.Sprintf("heads of at most %d elements", maxHead),
			Got: fmt.Sprintf("%d / %d = %d", width, heads, hd)}
	}
	for i, name := range []string{"k", "v"} {
		t := in[i+1]
		if !t.Shape[:2].Equal(q.Shape[:2]) {
			return &op.ArgError{Arg: name, Want: fmt.Sprintf("the rows of `q`, %s", q), Got: t.String()}
		}
		if t.Shape.Last().N != kv*hd {
			return &op.ArgError{Arg: name, Want: fmt.Sprintf("a last dim of kv * hd = %d * %d = %d", kv, hd, kv*hd), Got: t.String()}
		}
	}
	c.Out = q
	scale := 1 / math.Sqrt(float64(hd))
	if c.Has("scale") {
		scale = c.Float("scale")
	}
	rows := q.Shape[:2]
	c.Saved = []op.Operand{{Name: "lse", Type: tensor.Type{
		Shape: tensor.Shape{rows[0], rows[1], {Name: c.DimOf("heads").Name, N: heads}}}}}
	cache := tensor.Type{Shape: tensor.Shape{rows[1], in[1].Shape.Last()}}
	c.State = []op.Operand{{Name: "kcache", Type: cache}, {Name: "vcache", Type: cache}}
	c.Consts = []op.Const{
		{Field: "Batch", Kind: op.CBatch}, {Field: "Seq", Kind: op.CSeq}, {Field: "Pos", Kind: op.CPos},
		op.IntConst("Heads", heads), op.IntConst("KV", kv), op.IntConst("HD", hd),
		op.IntConst("Window", c.Int("window")), op.BoolConst("Causal", c.Bool("causal")),
		op.FloatConst("Cap", c.Float("cap")), op.FloatConst("Scale", scale),
	}
	return nil
}
