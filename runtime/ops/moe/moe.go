// Package moe is the room of the mixture of experts. The compiler expands a call of `moe` into
// the ops of this package (shape letters: N tokens of a micro-batch, E experts, C slots a
// token, M = N*C slots in all, D width):
//
//	logits   moe_logits    [N, D] -> f32 [N, E]     the router's linear layer
//	observe  moe_observe   f32 [N, E] -> i32 [N]    counts logits for a cutoff over the whole step
//	select   moe_select    f32 [N, E] -> i32        which token goes to which expert (layout.go)
//	gate     moe_gate      f32 [N, E] -> f32 [M]    the factor of each routed pair
//	gather   moe_gather    [N, D] -> [M, D]         tokens in the order of experts
//	(the expert's ops, its linears as package grouped's)
//	combine  moe_combine   [M, D] -> [N, D]         y[t] = sum over the pairs of t of gate * row
//
// Bytes and tasks are static; only how many of the M slots are in use, and where each expert's
// rows begin, is data. It stays on the device: a grid is sized for M, and what lies behind the
// last row in use is never read by an op that mixes rows. All of a token's sums run over its
// experts in ascending order, so a token's result does not depend on the other tokens.
//
// A router has a state (State) that lives as long as the run: cutoffs and biases, frozen within
// a step and moved by Advance after it, and integer counts of the step, which add up exactly in
// whatever micro-batches it is cut.
package moe

import (
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Room is the folder and package of the ops.
const Room = "moe"

// Def declares `moe` as a model writes it. It has no launches of its own.
var Def = &op.Def{
	Name:    "moe",
	Room:    Room,
	Doc:     "a mixture of experts: a router sends each token to some of them",
	Formula: "y[t] = shared(x[t]) + sum over the experts e chosen for t of gate[t,e] * expert_e(x[t])",
	Example: "x += moe: moe(x, experts = 8, expert = mlp(width = 2 * D), router = topk(2))",
	Expands: true,
	Params: []op.Param{
		{Name: "x", Kind: op.Tensor, Doc: "[B, T, D]"},
		{Name: "experts", Kind: op.Int, Doc: "E, the number of routed experts"},
		{Name: "expert", Kind: op.BlockKind, Doc: "the block that each expert is, its width bound: mlp(width = 2 * D)"},
		{Name: "shared", Kind: op.BlockKind, Default: op.None(), Doc: "a block that every token passes, or none"},
		{Name: "router", Kind: op.Word, Words: []string{"threshold", "expert_choice", "topk"}, Ctors: routers, Doc: "how tokens find experts"},
		{Name: "rows", Kind: op.Int, Default: op.None(), Doc: "experts a token, on average over a micro-batch, that memory is made for; none: 1.5 times the mean, rounded up"},
		{Name: "init", Kind: op.InitKind, Default: op.None(), Doc: "how the router's weight starts; none: the model's init"},
	},
	Infer:   func(c *op.Call) error { _, err := c.Activation("x"); return err },
	Forward: op.Launch{Func: "Expand", Writes: []string{"y"}, Cost: func(*op.Call, op.Sizes) op.Cost { return op.Cost{} }},
}

var poolWords = []string{"sequence", "micro", "step"}

// routers are the constructors of `router`.
var routers = []op.Ctor{
	{Name: "threshold", Params: []op.Param{
		{Name: "rate", Kind: op.Float, Doc: "the share of tokens that each expert should get"},
		{Name: "ema", Kind: op.Float, Default: op.FloatValue(0.999), Doc: "decay a step of the average that the cutoffs are"},
		{Name: "gate", Kind: op.Word, Default: op.WordValue("sigmoid"), Words: []string{"sigmoid"}, Doc: "the factor of an expert's result, of its logit"},
		{Name: "warmup", Kind: op.Word, Default: op.None(), Words: []string{"causal", "expert_choice", "none"}, Ctors: warmups, Doc: "how the first steps route"},
		{Name: "capacity", Kind: op.Float, Default: op.None(), Doc: "in training, each expert takes (1 - c) to (1 + c) of its share of a micro-batch; none: what passes"},
	}},
	{Name: "expert_choice", Params: []op.Param{
		{Name: "rate", Kind: op.Float, Doc: "the share of a pool's tokens that each expert takes"},
		{Name: "pool", Kind: op.Word, Default: op.WordValue("sequence"), Words: poolWords, Doc: "what an expert chooses from"},
		{Name: "ema", Kind: op.Float, Default: op.FloatValue(0.999), Doc: "decay a step of the cutoffs that evaluation and generation route by"},
	}},
	{Name: "topk", Params: []op.Param{
		{Name: "k", Kind: op.Int, Doc: "experts a token"},
		{Name: "scores", Kind: op.Word, Default: op.WordValue("softmax"), Words: []string{"softmax", "sigmoid"}, Doc: "what an expert's score is, of the logits"},
		{Name: "renorm", Kind: op.Bool, Default: op.BoolValue(false), Doc: "the gates of a token's experts are divided by their sum"},
		{Name: "balance", Kind: op.Word, Default: op.None(), Words: []string{"aux", "lossfree", "quantile", "none"}, Ctors: balances, Doc: "what keeps the experts evenly used"},
		{Name: "zloss", Kind: op.Float, Default: op.FloatValue(0), Doc: "weight of the mean squared log-sum-exp of the logits in the loss"},
		{Name: "scale", Kind: op.Float, Default: op.FloatValue(1), Doc: "a factor on every gate"},
	}},
}

var warmups = []op.Ctor{
	{Name: "expert_choice", Params: []op.Param{
		{Name: "steps", Kind: op.Int, Doc: "steps in which experts choose their tokens, later ones seen"},
		{Name: "pool", Kind: op.Word, Default: op.WordValue("step"), Words: poolWords, Doc: "what an expert chooses from"},
	}},
	{Name: "causal", Params: []op.Param{
		{Name: "steps", Kind: op.Int, Doc: "steps in which the average reaches over a twentieth of those done"},
	}},
}

var balances = []op.Ctor{
	{Name: "aux", Params: []op.Param{
		{Name: "alpha", Kind: op.Float, Doc: "weight of the balance loss"},
		{Name: "scope", Kind: op.Word, Default: op.WordValue("micro"), Words: []string{"micro", "step"}, Doc: "over what usage is counted"},
	}},
	{Name: "lossfree", Params: []op.Param{
		{Name: "u", Kind: op.Float, Default: op.FloatValue(0.001), Doc: "how far a bias moves a step"},
	}},
}

// logitsOf is the shape rule of an input that holds the router's logits.
func logitsOf(c *op.Call) (tensor.Type, error) {
	t, err := c.Activation("logits")
	if err == nil && t.Shape.Last().N != c.Int("experts") {
		err = &op.ArgError{Arg: "logits", Want: "a logit for each expert", Got: t.String()}
	}
	return t, err
}

// routingOf is the type of a routing, of which each op knows the size by E and C.
func routingOf(c *op.Call, t tensor.Type) tensor.Type {
	w := RoutingWords(c.Int("experts"), c.Int("slots"))
	return tensor.Type{DType: tensor.I32, Shape: tensor.Shape{t.Shape[0], t.Shape[1], {N: w}}}
}
