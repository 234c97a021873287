// Llama, Mistral, Qwen2.5 and Qwen3 are this model and a few switches. It has no sizes of
// its own: each size is an instance, in a file that uses this one. A window begins in layer
// window_from, and every full_every-th layer from there on has none.
model llama(D, L, H, KV = H, F, V, hd = D / H, theta = 10000.0, eps = 1e-5, scaling = none,
            qkv_bias = false, o_bias = false, mlp_bias = false, qk_norm = false,
            window = none, window_from = 0, full_every = L + 1, tied = false) {
  init normal(0.02)

  block layer(x, within) {
    h = attn_norm: rmsnorm(x, eps)
    q = linear(h, H * hd, bias = qkv_bias)
    k = linear(h, KV * hd, bias = qkv_bias)
    v = linear(h, KV * hd, bias = qkv_bias)
    if qk_norm {
      q = q_norm: rmsnorm(q, eps, per = hd)
      k = k_norm: rmsnorm(k, eps, per = hd)
    }
    a = attention(rope(q, hd, theta, scaling = scaling), rope(k, hd, theta, scaling = scaling), v,
                  heads = H, kv = KV, causal, window = within)
    x += o: linear(a, D, bias = o_bias)
    h = mlp_norm: rmsnorm(x, eps)
    x += down: linear(silu(gate: linear(h, F, bias = mlp_bias)) * up: linear(h, F, bias = mlp_bias), D, bias = mlp_bias)
  }

  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L as i {
      layer(x, within = if i < window_from or (i - window_from + 1) % full_every == 0 then none else window)
    }
    return head: linear(norm: rmsnorm(x, eps), V, tie = if tied then wte else none)
  }

  weights hf {
    if tied { wte = same("model.embed_tokens", "lm_head") } else { wte = "model.embed_tokens" }
    layer[i].attn_norm = "model.layers.{i}.input_layernorm"
    layer[i].q         = "model.layers.{i}.self_attn.q_proj"
    layer[i].k         = "model.layers.{i}.self_attn.k_proj"
    layer[i].v         = "model.layers.{i}.self_attn.v_proj"
    layer[i].o         = "model.layers.{i}.self_attn.o_proj"
    if qk_norm {
      layer[i].q_norm = "model.layers.{i}.self_attn.q_norm"
      layer[i].k_norm = "model.layers.{i}.self_attn.k_norm"
    }
    layer[i].mlp_norm = "model.layers.{i}.post_attention_layernorm"
    layer[i].gate     = "model.layers.{i}.mlp.gate_proj"
    layer[i].up       = "model.layers.{i}.mlp.up_proj"
    layer[i].down     = "model.layers.{i}.mlp.down_proj"
    norm              = "model.norm"
    if not tied { head = "lm_head" }
  }
}
