// qwen3-moe.mt: Qwen3 with a mixture of experts, and OLMoE, which differs by a few switches:
// norms over the whole of q and k, gates that are not divided by their sum.
model qwen3_moe(D = 2048, L = 48, H = 32, KV = 4, F = 768, V = 151936, E = 128, K = 8, hd = 128, theta = 1e6, eps = 1e-6,
                scaling = none, window = none, tied = false, head_norm = true, renorm = true, alpha = 0.001,
                attn_bias = false) {
  init normal(0.02)

  block mlp(x) { return down: linear(silu(gate: linear(x, F)) * up: linear(x, F), D) }

  block layer(x) {
    h = attn_norm: rmsnorm(x, eps)
    q = q_norm: rmsnorm(q: linear(h, H * hd, bias = attn_bias), eps, per = if head_norm then hd else H * hd)
    k = k_norm: rmsnorm(k: linear(h, KV * hd, bias = attn_bias), eps, per = if head_norm then hd else KV * hd)
    v = linear(h, KV * hd, bias = attn_bias)
    a = attention(rope(q, hd, theta, scaling = scaling), rope(k, hd, theta, scaling = scaling), v,
                  heads = H, kv = KV, causal, window = window)
    x += o: linear(a, D, bias = attn_bias)
    x += moe: moe(mlp_norm: rmsnorm(x, eps), experts = E, expert = mlp(),
                  router = topk(K, renorm = renorm, balance = aux(alpha)))
  }

  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(norm: rmsnorm(x, eps), V, tie = if tied then wte else none)
  }

  weights hf {
    if tied { wte = same("model.embed_tokens", "lm_head") } else { wte = "model.embed_tokens" }
    layer[i].attn_norm          = "model.layers.{i}.input_layernorm"
    layer[i].q                  = "model.layers.{i}.self_attn.q_proj"
    layer[i].k                  = "model.layers.{i}.self_attn.k_proj"
    layer[i].v                  = "model.layers.{i}.self_attn.v_proj"
    layer[i].o                  = "model.layers.{i}.self_attn.o_proj"
    layer[i].q_norm             = "model.layers.{i}.self_attn.q_norm"
    layer[i].k_norm             = "model.layers.{i}.self_attn.k_norm"
    layer[i].mlp_norm           = "model.layers.{i}.post_attention_layernorm"
    layer[i].moe.router         = "model.layers.{i}.mlp.gate"
    layer[i].moe.expert[e].gate = "model.layers.{i}.mlp.experts.{e}.gate_proj"
    layer[i].moe.expert[e].up   = "model.layers.{i}.mlp.experts.{e}.up_proj"
    layer[i].moe.expert[e].down = "model.layers.{i}.mlp.experts.{e}.down_proj"
    norm                        = "model.norm"
    if not tied { head = "lm_head" }
  }
}

train {
  seq       = 4096
  batch     = 64 rows
  steps     = 10000
  optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.1)
  lr        = cosine(peak = 2e-5, warmup = 200, final = 2e-6)
  clip      = 1.0
  seed      = 1
}
