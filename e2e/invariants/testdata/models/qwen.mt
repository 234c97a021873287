// Biases and norms on queries and keys, heads wider than D / H, tied head.
model qwen(D = 24, L = 2, H = 2, KV = 1, F = 40, V = 256, hd = 16) {
  init normal(0.08)
  block layer(x) {
    h = attn_norm: rmsnorm(x)
    q = linear(h, H * hd, bias)
    k = linear(h, KV * hd, bias)
    v = linear(h, KV * hd, bias)
    q = q_norm: rmsnorm(q, per = hd)
    k = k_norm: rmsnorm(k, per = hd)
    a = attention(rope(q, hd), rope(k, hd), v, heads = H, kv = KV, causal)
    x += o: linear(a, D)
    h = mlp_norm: rmsnorm(x)
    x += down: linear(silu(gate: linear(h, F)) * up: linear(h, F), D)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(norm: rmsnorm(x), V, tie = wte)
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
