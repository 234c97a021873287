// Package qkrope is the room of what stands between the products of q and k and attention, in one
// pass over both: each head is turned by its position's angle (package rope), and before or after
// that divided by its root mean square, where the model does so (package rmsnorm with `per`):
//
//	y = turn(x)                       Norm 0
//	y = turn(x * inv * weight)        Norm 1 (Before)    inv = 1 / sqrt(mean of x^2 + Eps)
//	y = turn(x) * inv * weight        Norm 2 (After)     inv = 1 / sqrt(mean of turn(x)^2 + Eps)
//
// for q [B, T, Heads*HD] and k [B, T, KV*HD], with one table of angles. Backward turns the gradients
// back, normalises them, and makes those of the weights; of what is turned and normalised nothing
// else is stored. The compiler puts these launches in the place of those of rope and rmsnorm. Their
// results are the same bits on a CPU, and have the same formulas on a GPU: operations and sums have the
// order of those rooms, and where those store a bf16 between two ops, the value is rounded to one here too.
package qkrope

import (
	"github.com/megatrain/mtc/runtime/op"
)

// The places of the norm.
const (
	None = iota
	Before
	After
)

// MaxHD is the largest head; heads are multiples of 16 elements.
const MaxHD = 1024

// Fits tells whether heads of hd elements can be taken.
func Fits(hd int64) bool { return hd%16 == 0 && hd > 0 && hd <= MaxHD }

// Def declares the fused launches; a pass of the compiler makes its calls, no model writes it.
var Def = &op.Def{
	Name:      "qk_rope",
	Doc:       "turns the heads of q and k by their positions' angles, with their norms, in one pass",
	Formula:   "yq = rope(q), yk = rope(k); or with rmsnorm(per = hd) before or after it",
	Hidden:    true,
	Room:      "qkrope",
	Documents: true,
	Params: []op.Param{
		{Name: "q", Kind: op.Tensor, Doc: "[B, T, heads * hd]"},
		{Name: "k", Kind: op.Tensor, Doc: "[B, T, kv * hd]"},
	},
	Infer: func(*op.Call) error { return nil }, // New gives all of a call
	Forward: op.Launch{
		Func: "Forward", Reads: []string{"q", "k", "wq", "wk", "cs"}, Writes: []string{"yq", "yk", "invq", "invk"},
		InPlace: [][2]string{{"q", "yq"}, {"k", "yk"}}, Cost: cost(3, 4, 2, 0),
	},
	Backward: []op.Launch{{
		Func:    "Backward",
		Reads:   []string{"q", "k", "wq", "wk", "invq", "invk", "cs", "d.yq", "d.yk"},
		Writes:  []string{"d.q", "d.k", "d.wq", "d.wk"},
		Adds:    []string{"d.q", "d.k", "d.wq", "d.wk"},
		InPlace: [][2]string{{"d.yq", "d.q"}, {"d.yk", "d.k"}, {"q", "d.q"}, {"k", "d.k"}},
		Cost:    cost(4, 12, 2, 1),
	}},
}

// Sides are the constants of a call.
type Sides struct {
	Heads, KV, HD int64 // KV 0: q alone
	Norm          int64
	Interleaved   bool
	Eps           float64
}

// New is a call over rows like those of another, a rope's.
func New(like *op.Call, s Sides) *op.Call {
	num := func(n int64) op.Value { return *op.IntValue(n) }
	return &op.Call{
		Def: Def, Inputs: []string{"q", "k"}, DType: like.DType, Out: like.Out,
		Attr: map[string]op.Value{"heads": num(s.Heads), "kv": num(s.KV), "hd": num(s.HD), "norm": num(s.Norm)},
		Consts: []op.Const{
			op.RowsConst(), {Field: "Seq", Kind: op.CSeq}, {Field: "Pos", Kind: op.CPos},
			op.IntConst("Heads", s.Heads), op.IntConst("KV", s.KV), op.IntConst("HD", s.HD),
			op.BoolConst("Interleaved", s.Interleaved), op.IntConst("Norm", s.Norm), op.FloatConst("Eps", s.Eps),
		},
	}
}

// cost counts turn operations an element and norm ones where there is a norm, and of an element as
// many passes over memory; with a norm, more of them. The table is read once.
func cost(turn, norm, passes, more int64) func(c *op.Call, s op.Sizes) op.Cost {
	return func(c *op.Call, s op.Sizes) op.Cost {
		hd, heads := c.Int("hd"), c.Int("heads")+c.Int("kv")
		n, flops, moved := s.Rows()*heads*hd, turn, passes
		table := s.Seq * hd * 4
		if c.Int("norm") != None {
			flops, moved = flops+norm, moved+more
			table += s.Rows() * heads * 4 // inv
		}
		return op.Cost{FLOPs: flops * n, Bytes: moved*n*c.DType.Size() + table}
	}
}
