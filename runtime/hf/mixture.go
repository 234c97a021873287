package hf

import (
	"fmt"

	"github.com/megatrain/mtc/runtime/plan"
)

// mixture reads the router's settings that all mixtures of experts have.
func (r *reader) mixture(experts, k int64, coefficient float64) []plan.Value {
	e := r.whole("num_experts", 0)
	if n := r.whole("num_local_experts", 0); n != 0 { // the same under its other name
		if e != 0 && e != n {
			r.relation([]string{"num_experts", "num_local_experts"}, "num_experts is %d and num_local_experts %d", e, n)
		}
		e = n
	}
	if e == 0 {
		e = experts
	}
	k = r.whole("num_experts_per_tok", k)
	if k > e {
		r.relation([]string{"num_experts", "num_local_experts", "num_experts_per_tok"}, "num_experts_per_tok is %d, and there are %d experts", k, e)
	}
	return []plan.Value{value("E", e), value("K", k), value("alpha", r.balance(coefficient))}
}

// balance is the weight of the balance loss, which transformers adds where the router's logits
// are asked for.
func (r *reader) balance(coefficient float64) float64 {
	if v, ok := r.get("router_aux_loss_coef"); ok {
		x, ok := numberOf(v)
		if !ok || x < 0 {
			r.fault("router_aux_loss_coef is %s, a number of 0 or more is wanted", jsonText(v))
		}
		coefficient = x
	}
	if v, ok := r.get("router_jitter_noise"); ok {
		if x, ok := numberOf(v); !ok || x != 0 {
			r.note("router_jitter_noise is %s: routers here have no noise", jsonText(v))
		}
	}
	if on := r.boolean("output_router_logits", false); !on {
		if coefficient > 0 {
			r.note("output_router_logits is false, so alpha, the weight of the balance loss, is 0 as it is there; set it to train routers further (router_aux_loss_coef is %v)", coefficient)
		}
		return 0
	}
	r.note("the balance loss is by layer here, and over all layers there")
	return coefficient
}

func describeMixtral(r *reader) []plan.Value {
	window := "none"
	if w := r.whole("sliding_window", 0); w > 0 {
		window = fmt.Sprint(w)
	}
	return append(r.llama(defaults{kv: 8, theta: 1e6, eps: 1e-5, hidden: "intermediate_size"}, window), r.mixture(8, 2, 0.001)...)
}

func describeQwen3Moe(r *reader) []plan.Value {
	window, on := "none", r.boolean("use_sliding_window", false)
	if w := r.whole("sliding_window", 0); w > 0 && on {
		window = fmt.Sprint(w)
	}
	r.get("max_window_layers") // all layers are alike there
	r.get("intermediate_size") // of dense layers, of which there are none
	if n := r.whole("decoder_sparse_step", 1); n != 1 {
		r.fault("decoder_sparse_step is %d: every layer has experts here", n)
	}
	if v, ok := r.get("mlp_only_layers"); ok {
		if list, ok := v.([]any); !ok || len(list) > 0 {
			r.fault("mlp_only_layers is %s: every layer has experts here", jsonText(v))
		}
	}
	out := append(r.llama(defaults{kv: 4, theta: 1e4, eps: 1e-6, hidden: "moe_intermediate_size"}, window), r.mixture(128, 8, 0.001)...)
	return append(out, value("head_norm", true), value("renorm", r.boolean("norm_topk_prob", false)), value("attn_bias", r.boolean("attention_bias", false)))
}

func describeOlmoe(r *reader) []plan.Value {
	out := append(r.llama(defaults{kv: 0, theta: 1e4, eps: 1e-5, hidden: "intermediate_size"}, "none"), r.mixture(64, 8, 0.01)...)
	return append(out, value("head_norm", false), value("renorm", r.boolean("norm_topk_prob", false)), value("attn_bias", r.boolean("attention_bias", false)))
}
