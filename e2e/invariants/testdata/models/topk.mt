// Token choice with each balance: a loss over the step, biases, quantiles; a z-loss.
model topk(D = 32, L = 3, H = 4, V = 256, E = 5) {
  init normal(0.15)
  block mlp(x, width) { return down: linear(silu(gate: linear(x, width)) * up: linear(x, width), D) }
  block layer(x, i) {
    h = attn_norm: rmsnorm(x)
    x += o: linear(attention(q: linear(h, D), k: linear(h, D), v: linear(h, D), heads = H, causal), D)
    h = mlp_norm: rmsnorm(x)
    if i == 0 {
      x += moe: moe(h, experts = E, expert = mlp(width = 24),
                    router = topk(2, renorm, balance = aux(0.05, scope = step), zloss = 0.01))
    } else {
      if i == 1 {
        x += moe: moe(h, experts = E, expert = mlp(width = 24),
                      router = topk(2, scores = sigmoid, renorm, scale = 1.5, balance = lossfree(0.01)))
      } else {
        x += moe: moe(h, experts = E, expert = mlp(width = 24), shared = mlp(width = 16),
                      router = topk(2, balance = quantile))
      }
    }
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L as i { layer(x, i) }
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
