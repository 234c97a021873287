// Rotary positions, grouped keys and values, gated MLP, a head of its own.
model llama(D = 32, L = 3, H = 4, KV = 2, F = 48, V = 256, hd = D / H) {
  init normal(0.08)
  block layer(x) {
    h = attn_norm: rmsnorm(x)
    q = linear(h, H * hd)
    k = linear(h, KV * hd)
    v = linear(h, KV * hd)
    a = attention(rope(q, hd), rope(k, hd), v, heads = H, kv = KV, causal)
    x += o: linear(a, D)
    h = mlp_norm: rmsnorm(x)
    x += down: linear(silu(gate: linear(h, F)) * up: linear(h, F), D)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(norm: rmsnorm(x), V)
  }
}

train {
  seq   = 16
  batch = 8 rows
  steps = 12
  lr    = cosine(peak = 1e-2, warmup = 3, final = 1e-3)
  clip  = 1.0
  eval  = every(5, batches = 2)
  seed  = 7
}
