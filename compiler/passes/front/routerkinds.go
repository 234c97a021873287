package front

import (
	"math"

	"github.com/megatrain/mtc/lang/source"
	"github.com/megatrain/mtc/runtime/op"
	"github.com/megatrain/mtc/runtime/ops/moe"
)

func (r *routerCheck) threshold() {
	r.set("kind", moe.Cutoff)
	warm, at := r.arg("warmup")
	pool := int64(moe.NoPool)
	if warm.Str == "expert_choice" {
		pool = poolOf(warm.Args[1].Str)
		r.set("choice", warm.Args[0].Int)
	} else if warm.Str == "causal" {
		r.set("causal", warm.Args[0].Int)
	}
	if !warm.IsNone() && warm.Str != "none" && warm.Args[0].Int < 1 {
		r.fail(at, "a warm-up has at least one step, not %s; leave it out for none", warm.Args[0])
	}
	r.set("pool", pool)
	r.share(pool)
	r.average()
	if v, at := r.arg("capacity"); !v.IsNone() {
		r.attr["capacity"] = *op.FloatValue(v.Num())
		if x := v.Num(); !(x >= 0 && x <= 1) {
			r.fail(at, "`capacity` is a part of an expert's share, 0 to 1, not %s", v)
		}
	}
	if r.ok {
		r.attr["start"] = *op.FloatValue(normalTop(r.attr["rate"].Float))
	}
}

func (r *routerCheck) expertChoice() {
	r.set("kind", moe.Cutoff)
	v, _ := r.arg("pool")
	pool := poolOf(v.Str)
	r.set("pool", pool)
	r.set("choice", -1)
	r.share(pool)
	r.average()
	if r.ok {
		r.attr["start"] = *op.FloatValue(normalTop(r.attr["rate"].Float))
	}
}

func (r *routerCheck) topk(experts int64) {
	s := r.s
	r.set("kind", moe.TopK)
	k, at := r.arg("k")
	r.set("k", k.Int)
	switch {
	case k.Int < 1:
		r.fail(at, "`topk` takes at least one expert, not %s", k)
	case k.Int > experts:
		r.fail(at, "`topk` takes %d experts, and there are %d", k.Int, experts)
	}
	scores, _ := r.arg("scores")
	r.attr["sigmoid"] = *op.BoolValue(scores.Str == "sigmoid")
	renorm, renormAt := r.arg("renorm")
	r.attr["renorm"] = renorm
	scale, at := r.arg("scale")
	r.attr["scale"] = scale
	if !(scale.Num() > 0) {
		r.fail(at, "`scale` is above 0, not %s", scale)
	}
	r.single("scale", scale.Num(), at)
	z, at := r.arg("zloss")
	r.attr["zloss"] = z
	if !(z.Num() >= 0) {
		r.fail(at, "`zloss` is at least 0, not %s", z)
	}
	r.single("zloss", z.Num(), at)
	b, at := r.arg("balance")
	if len(b.Args) > 0 {
		r.single(map[string]string{"aux": "alpha", "lossfree": "u"}[b.Str], b.Args[0].Num(), at)
	}
	switch b.Str {
	case "aux":
		r.attr["alpha"] = b.Args[0]
		if !(b.Args[0].Num() >= 0) {
			r.fail(at, "`alpha` is at least 0, not %s", b.Args[0])
		}
		r.set("balance", moe.AuxStep)
		if b.Args[1].Str == "micro" {
			r.set("balance", moe.AuxMicro)
		}
	case "lossfree":
		r.attr["u"] = b.Args[0]
		if !(b.Args[0].Num() > 0) {
			r.fail(at, "`u` is above 0, not %s", b.Args[0])
		}
		r.set("balance", moe.LossFree)
	case "quantile":
		r.set("balance", moe.QuantileTop)
		if k.Int >= experts {
			r.fail(at, "with all %d experts chosen there is nothing to balance", experts)
		}
	}
	if r.ok && k.Int == 1 && (renorm.Bool || experts == 1 && scores.Str == "softmax") {
		if s.told == nil {
			s.told = map[source.Span]bool{}
		}
		if !s.told[renormAt] {
			s.told[renormAt] = true
			what, hint := "the gate of a single expert divided by itself is 1", "leave `renorm` out, or take `k = 2`"
			if !renorm.Bool {
				what, hint = "the softmax over one expert is 1", "take more experts, or `scores = sigmoid`"
			}
			s.Diags.Warnf(codeRouter, renormAt, "%s, so no gradient of the loss reaches the router", what).Hint("%s", hint)
		}
	}
}

func poolOf(word string) int64 {
	switch word {
	case "sequence":
		return moe.Sequence
	case "micro":
		return moe.Micro
	}
	return moe.Step
}

// normalTop is the value above which a share of a standard normal lies: logits of a normalised
// input through a weight of variance 1/D are such, so it is where cutoffs start.
func normalTop(rate float64) float64 {
	if rate >= 1 {
		return -math.MaxFloat32
	}
	return math.Sqrt2 * math.Erfinv(1-2*rate)
}
