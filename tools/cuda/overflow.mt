// A model whose second layer leaves the range of numbers: what --check-nan has to find.
model overflow(D = 16, L = 2, H = 2, V = 256) {
  init normal(0.05)

  block layer(x, big) {
    h = attn_norm: rmsnorm(x)
    a = attention(q: linear(h, D), k: linear(h, D), v: linear(h, D), heads = H, causal)
    x += o: linear(a, D, init = normal(big))
    h = mlp_norm: rmsnorm(x)
    x += down: linear(up: linear(h, 4 * D, init = normal(big)), D, init = normal(big))
  }

  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L as i { layer(x, big = if i == 1 then 1e25 else 0.05) }
    return head: linear(norm: rmsnorm(x), V)
  }
}

train {
  seq   = 16
  batch = 4 rows
  steps = 3
  clip  = 1.0
  lr    = 1e-3
}
