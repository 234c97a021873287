// Package crossentropy is the room of the next-token loss over chunks of logits:
//
//	loss[r]      = log(sum over v of exp(logits[r,v])) - logits[r, targets[r]]     logits [R, V], targets i32 [R]
//	dlogits[r,v] = (softmax(logits[r])[v] - (v = targets[r])) * scalars[inv_tokens]
//	partials     += {sum of loss, number of targets}                               two float64
//
// Rows whose target is negative are ignored: no loss, zero gradient, not counted. Eval
// computes the loss alone; Loss computes it and the gradient of the mean over the whole
// step in one pass, in place over the logits if asked. partials is cleared by a fill at the
// start of the function and added to chunk after chunk, in row order.
//
// With a soft cap (the constant Cap, which the compiler gives where the op softcap makes the logits of the
// loss alone) logits are cap * tanh(x / cap) of what is given, and the gradient is that of x.
package crossentropy

import (
	"fmt"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/tensor"
)

// Def declares crossentropy. Forward is Eval; Backward[0] is Loss, which stands for both
// the forward and the backward of a training step. "partials" stands in Writes only, though
// both add to it.
var Def = &op.Def{
	Name:    "crossentropy",
	Doc:     "next-token cross-entropy of logits against targets, with its gradient",
	Formula: "partials += {sum_r logsumexp(logits[r]) - logits[r, targets[r]], count}; dlogits = (softmax - onehot) / tokens",
	Hidden:  true,
	Params: []op.Param{
		{Name: "logits", Kind: op.Tensor, Doc: "[B, T, V]"},
		{Name: "targets", Kind: op.Tensor, Doc: "i32 [B, T]; negative: ignored"},
	},
	Infer:   infer,
	RowWise: true,
	Forward: op.Launch{Func: "Eval", Reads: []string{"logits", "targets"}, Writes: []string{"partials"}, Cost: evalCost, Scratch: scratch},
	Backward: []op.Launch{{
		Func: "Loss", Reads: []string{"logits", "targets", "scalars"}, Writes: []string{"d.logits", "partials"},
		InPlace: [][2]string{{"logits", "d.logits"}},
		Cost:    lossCost, Scratch: scratch,
	}},
}

func scratch(_ *op.Call, s op.Sizes) int64 {
	return work(&device.Args{I: [device.MaxInts]int64{s.Rows()}})
}

func infer(c *op.Call) error {
	logits, err := c.Activation("logits")
	if err != nil {
		return err
	}
	targets, ok := c.Input("targets")
	if !ok || targets.DType != tensor.I32 || !targets.Shape.Equal(logits.Shape[:2]) {
		return &op.ArgError{Arg: "targets", Want: fmt.Sprintf("i32%s", logits.Shape[:2]), Got: targets.String()}
	}
	// The output is the two float64 of partials, told as four f32.
	c.Out = tensor.Type{DType: tensor.F32, Shape: tensor.Shape{{N: 4}}}
	c.Consts = []op.Const{op.RowsConst(), op.IntConst("V", logits.Shape.Last().N)}
	return nil
}

func evalCost(c *op.Call, s op.Sizes) op.Cost {
	return op.Cost{FLOPs: (4 + capFLOPs(c)) * s.Elems(c.In[0].Shape), Bytes: c.Moved(s, "logits", "targets")}
}

func lossCost(c *op.Call, s op.Sizes) op.Cost {
	return op.Cost{FLOPs: (6 + 2*capFLOPs(c)) * s.Elems(c.In[0].Shape), Bytes: c.Moved(s, "logits", "targets", "d.logits")}
}

// capFLOPs is what a soft cap costs for each logit, in forward as in backward: as much as in the op softcap.
func capFLOPs(c *op.Call) int64 {
	for _, k := range c.Consts {
		if k.Field == "Cap" {
			return 3
		}
	}
	return 0
}
