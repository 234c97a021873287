package front

// What other frameworks call ops, parameters and fields of training, and what stands for it here.
// Names that are near to one of this language need no entry: they are told by their spelling.

var foreignOps = map[string]string{
	"swish":         "`silu(x)` is the same function",
	"gelu_new":      "`gelu(x)` is the tanh approximation",
	"gelu_fast":     "`gelu(x)` is the tanh approximation",
	"gelu_tanh":     "`gelu(x)` is the tanh approximation",
	"geglu":         "write `gelu(gate) * up`",
	"reglu":         "write `relu(gate) * up`",
	"glu":           "write `sigmoid(gate) * up`",
	"tanh":          "`softcap(x, 1.0)` is tanh(x)",
	"dropout":       "there is no dropout: training here is without",
	"softmax":       "softmax is part of `attention` and of routers; by itself there is none",
	"concat":        "tensors are not put together; a linear over two tensors is the sum of two linears",
	"cat":           "tensors are not put together; a linear over two tensors is the sum of two linears",
	"split":         "tensors are not cut; write a linear for each part, and `split` in `weights` for one stored tensor",
	"chunk":         "tensors are not cut; write a linear for each part, and `split` in `weights` for one stored tensor",
	"reshape":       "heads stay flattened in the last dim; `per = hd` and `heads = H` say where they are",
	"view":          "heads stay flattened in the last dim; `per = hd` and `heads = H` say where they are",
	"transpose":     "heads stay flattened in the last dim; in `weights`, `transpose` turns a stored matrix",
	"matmul":        "a product with a weight is `linear(x, out)`",
	"einsum":        "a product with a weight is `linear(x, out)`",
	"dense":         "a product with a weight is `linear(x, out)`",
	"fc":            "a product with a weight is `linear(x, out)`",
	"residual":      "a residual is `x += ...`",
	"sdpa":          "write `attention(q, k, v, heads = H, causal)`",
	"mha":           "write `attention(q, k, v, heads = H, causal)`",
	"rotary":        "write `rope(x, hd)`",
	"positional":    "learned positions are `embed(position, context, D)`, rotations `rope(x, hd)`",
	"checkpoint":    "what runs forward again in backward is an option: `--recompute`",
	"cross_entropy": "`forward` returns logits; the loss on the next token is taken by itself",
}

var foreignParams = map[string]string{
	"n_heads":        "heads",
	"num_heads":      "heads",
	"n_head":         "heads",
	"kv_heads":       "kv",
	"num_kv_heads":   "kv",
	"n_kv_heads":     "kv",
	"groups":         "kv",
	"is_causal":      "causal",
	"softcap":        "cap",
	"logit_cap":      "cap",
	"softmax_scale":  "scale",
	"sliding_window": "window",
	"base":           "theta",
	"rope_theta":     "theta",
	"head_dim":       "hd",
	"rotary_dim":     "dims",
	"use_bias":       "bias",
	"out_features":   "out",
	"dim_out":        "out",
	"epsilon":        "eps",
	"vocab":          "rows",
	"num_embeddings": "rows",
	"embedding_dim":  "dim",
	"approximate":    "approx",
	"num_experts":    "experts",
	"n_experts":      "experts",
	"top_k":          "k",
	"weight_decay":   "decay",
	"std_dev":        "std",
}

var foreignFields = map[string]string{
	"weight_decay":                "it is part of the optimizer: `optimizer = adamw(decay = 0.1)`; matrices alone decay",
	"wd":                          "it is part of the optimizer: `optimizer = adamw(decay = 0.1)`; matrices alone decay",
	"betas":                       "they are parts of the optimizer: `optimizer = adamw(beta1 = 0.9, beta2 = 0.95)`",
	"beta1":                       "it is part of the optimizer: `optimizer = adamw(beta1 = 0.9)`",
	"beta2":                       "it is part of the optimizer: `optimizer = adamw(beta2 = 0.95)`",
	"grad_clip":                   "write `clip = 1.0`",
	"max_grad_norm":               "write `clip = 1.0`",
	"gradient_clipping":           "write `clip = 1.0`",
	"warmup":                      "it is part of the learning rate: `lr = cosine(peak = 3e-4, warmup = 100)`",
	"warmup_steps":                "it is part of the learning rate: `lr = cosine(peak = 3e-4, warmup = 100)`",
	"min_lr":                      "it is part of the learning rate: `lr = cosine(peak = 3e-4, final = 3e-5)`",
	"learning_rate":               "write `lr = 3e-4`",
	"scheduler":                   "write `lr = cosine(peak = 3e-4, warmup = 100)`",
	"max_steps":                   "write `steps = 1000`",
	"max_iters":                   "write `steps = 1000`",
	"seq_len":                     "write `seq = 1024`",
	"block_size":                  "write `seq = 1024`",
	"context":                     "write `seq = 1024`",
	"batch_size":                  "write `batch = 8 rows`, or `batch = 8192 tokens`",
	"micro_batch":                 "how a step is cut is an option: `--micro-batch ROWS`",
	"micro_batch_size":            "how a step is cut is an option: `--micro-batch ROWS`",
	"accumulate":                  "how a step is cut is an option: `--micro-batch ROWS`",
	"gradient_accumulation_steps": "how a step is cut is an option: `--micro-batch ROWS`",
	"dtype":                       "write `precision = bf16`",
	"device":                      "the machine is an option: `--target cuda`",
	"dropout":                     "there is no dropout: training here is without",
}

// foreignParam is what a parameter of other frameworks is called here, "" where the callee has none such.
func foreignParam(name string, has []string) string {
	if p := foreignParams[name]; p != "" && indexOf(has, p) >= 0 {
		return p
	}
	return ""
}
