// mixtral.mt: Mixtral 8x7B. Every layer's MLP is eight experts, of which a token takes two; their
// gates are the softmax over these two.
model mixtral(D = 4096, L = 32, H = 32, KV = 8, F = 14336, V = 32000, E = 8, K = 2, hd = D / H, theta = 1e6, eps = 1e-5,
              scaling = none, window = none, tied = false, alpha = 0.02) {
  init normal(0.02)

  block mlp(x) { return down: linear(silu(gate: linear(x, F)) * up: linear(x, F), D) }

  block layer(x) {
    h = attn_norm: rmsnorm(x, eps)
    q = linear(h, H * hd)
    k = linear(h, KV * hd)
    v = linear(h, KV * hd)
    a = attention(rope(q, hd, theta, scaling = scaling), rope(k, hd, theta, scaling = scaling), v,
                  heads = H, kv = KV, causal, window = window)
    x += o: linear(a, D)
    x += moe: moe(mlp_norm: rmsnorm(x, eps), experts = E, expert = mlp(), router = topk(K, renorm, balance = aux(alpha)))
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
    layer[i].mlp_norm           = "model.layers.{i}.post_attention_layernorm"
    layer[i].moe.router         = "model.layers.{i}.block_sparse_moe.gate"
    layer[i].moe.expert[e].gate = "model.layers.{i}.block_sparse_moe.experts.{e}.w1"
    layer[i].moe.expert[e].up   = "model.layers.{i}.block_sparse_moe.experts.{e}.w3"
    layer[i].moe.expert[e].down = "model.layers.{i}.block_sparse_moe.experts.{e}.w2"
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
