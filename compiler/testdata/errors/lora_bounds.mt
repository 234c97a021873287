model m(D = 64, L = 2, V = 256) {
  init normal(0.02)
  block layer(x) {
    h = n1: rmsnorm(x)
    q = linear(h, D)
    x += down: linear(silu(up: linear(q, 4 * D)), D)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(norm: rmsnorm(x), V, tie = wte)
  }
}
train {
  seq = 64
  batch = 8 rows
  lora(rank = 9000000000000000000, alpha = 1e-45, targets = q)
}
