model m(D = 64, L = 2, V = 256) {
  init normal(0.02)
  block layer(x) {
    h = n1: rmsnorm(x)
    x += down: linear(silu(up: linear(h, 4 * D)), D)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(norm: rmsnorm(x), V)
  }
}
train {
  seq = 0
  batch = 0 tokens
  steps = -1
  optimizer = adamw(beta1 = 1.0, beta2 = -0.1, eps = 0, decay = -1)
  lr = cosine(peak = 0, warmup = -1, final = -1e-5)
  clip = 0
  eval = every(0, batches = 0, data = "")
  save = every(0, keep = 0)
  seed = -4
  width = 3
  data = ""
}
