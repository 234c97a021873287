package moe

import (
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// GateDef declares the factors of routed pairs, y f32 [B, T, C], in the order of rows; p is the
// softmax of a token's logits over all experts, s their sigmoid:
//
//	cutoff:  gate = s[t,e]
//	topk:    gate = scale * score[t,e], score p or s; with renorm divided by its sum over the token's experts
//
// The choice itself has no gradient. That of the logits is set whole (0 where nothing depends
// on one), and takes along those of what a router adds to the loss, over the n tokens with a
// target of the step:
//
//	aux:   alpha * sum over e of f_e P_e, f_e = E / (k n) * pairs of e, P_e = 1/n sum over t of u[t,e],
//	       u = p, or s / sum over experts of s (DeepSeek-V3, arXiv 2412.19437, eq. 17-20); f is held fixed and counted over
//	       the step or over each micro-batch
//	zloss: zloss / n * sum over t of logsumexp(logits[t])^2 (ST-MoE, arXiv 2202.08906, eq. 5)
var GateDef = &op.Def{
	Name:    "moe_gate",
	Room:    Room,
	Doc:     "the factor of each routed pair, with the losses of the router",
	Formula: "gate[r] = sigmoid(logits[t,e]), or a score of topk",
	Hidden:  true,
	Router:  true,
	F32:     true,
	Params: append([]op.Param{
		{Name: "logits", Kind: op.Tensor, Doc: "f32 [B, T, E]"},
		{Name: "routing", Kind: op.Tensor, Doc: "what select made"},
	}, routerParams...),
	Infer: func(c *op.Call) error {
		t, err := logitsOf(c)
		if err != nil {
			return err
		}
		c.Out = tensor.Type{DType: tensor.F32, Shape: t.Shape.WithLast(tensor.Dim{N: c.Int("slots")})}
		c.Consts = routerConsts(c)
		return nil
	},
	Forward: op.Launch{Func: "Gate", Reads: []string{"logits", "routing"}, Writes: []string{"y"}, Cost: logitsCost},
	Backward: []op.Launch{{
		Func: "GateBackward", Reads: []string{"logits", "routing", "targets", "scalars", "router", "d.y"}, Writes: []string{"d.logits"}, Adds: []string{"d.logits"},
		Cost: func(c *op.Call, s op.Sizes) op.Cost {
			return op.Cost{FLOPs: 8 * s.Elems(c.In[0].Shape), Bytes: c.Moved(s, "logits", "d.y", "d.logits")}
		},
	}},
}
