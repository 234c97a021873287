// Experts choose from the whole step at first, then cutoffs do; gated experts, two mixtures in a
// block, ops behind them.
model choice(D = 32, L = 2, H = 4, V = 256, E = 4) {
  init normal(0.15)
  block mlp(x, width) { return down: linear(silu(gate: linear(x, width)) * up: linear(x, width), D) }
  block layer(x) {
    h = rmsnorm(x, weight = false)
    x += o: linear(attention(q: linear(h, D), k: linear(h, D), v: linear(h, D), heads = H, causal), D)
    x += first: moe(norm: rmsnorm(x), experts = E, expert = mlp(width = 24),
                    router = threshold(0.25, ema = 0.8, warmup = expert_choice(5, pool = step)))
    x += 0.5 * second: moe(norm2: rmsnorm(x), experts = E, expert = mlp(width = 16),
                           router = expert_choice(0.25, pool = sequence, ema = 0.8))
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
