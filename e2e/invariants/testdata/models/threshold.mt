// Expert Threshold routing, causal from the first step, a shared expert, a dense layer first.
model threshold(D = 32, L = 3, H = 4, V = 256, E = 6, rate = 1.0 / 4) {
  init normal(0.15)
  block mlp(x, width) { return down: linear(relu2(up: linear(x, width)), D) }
  block attn(x) {
    h = rmsnorm(x, weight = false)
    a = attention(rope(q: linear(h, D), D / H), rope(k: linear(h, D), D / H), v: linear(h, D), heads = H, causal)
    x += o: linear(a, D)
  }
  block dense(x) {
    attn(x)
    x += mlp: mlp(rmsnorm(x, weight = false), 2 * D)
  }
  block sparse(x) {
    attn(x)
    x += moe: moe(rmsnorm(x, weight = false), experts = E, expert = mlp(width = 24), shared = mlp(width = 40),
                  router = threshold(rate, ema = 0.8, warmup = causal(6)))
  }
  forward(tokens) {
    x = rmsnorm(wte: embed(tokens, V, D), weight = false)
    layer: dense(x)
    repeat L - 1 { layer: sparse(x) }
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
