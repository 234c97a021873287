// Experts with biases, and with norms: one with a weight and a bias for each expert, one with a weight for
// heads of 8, one without a weight. Beside them an expert for every token, which has neither.
model biased(D = 32, L = 2, H = 4, V = 256, E = 5) {
  init normal(0.15)
  block mlp(x, width) {
    h = up: linear(first: layernorm(x), width, bias)
    h = middle: rmsnorm(gelu(h), per = 8)
    return down: linear(rmsnorm(h, weight = false), D, bias)
  }
  block plain(x, width) { return down: linear(relu2(up: linear(x, width)), D) }
  block layer(x) {
    h = rmsnorm(x, weight = false)
    x += o: linear(attention(q: linear(h, D), k: linear(h, D), v: linear(h, D), heads = H, causal), D)
    x += moe: moe(rmsnorm(x, weight = false), experts = E, expert = mlp(width = 24), shared = plain(width = 24), router = threshold(0.3, ema = 0.8))
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(rmsnorm(x, weight = false), V)
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
