model m(D = 64, L = [1, 2], V = 256) {
  init normal(0.02)
  block layer(x) {
    x += down: linear(rmsnorm(x, weight = [x, true]), D)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat 2 { layer(x) }
    return head: linear(norm: rmsnorm(x), V)
  }
}
train {
  seq = [64]
  batch = 8 rows
  lr = cosine(peak = [1e-3])
  lora(rank = 4, alpha = 8, targets = [down
}
