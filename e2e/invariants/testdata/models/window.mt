// A sliding window in every second layer (two templates), relu2, soft caps, weightless norms.
model window(D = 32, L = 4, H = 2, V = 256) {
  init normal(0.08)
  block layer(x, window = none) {
    h = rmsnorm(x, weight = false)
    a = attention(rope(q: linear(h, D), D / H), rope(k: linear(h, D), D / H), v: linear(h, D), heads = H, causal, window = window, cap = 20.0)
    x += o: linear(a, D)
    h = rmsnorm(x, weight = false)
    x += down: linear(relu2(up: linear(h, 3 * D)), D)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L as i { layer(x, window = if i % 2 == 0 then 5 else none) }
    return softcap(head: linear(rmsnorm(x, weight = false), V), 15.0)
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
