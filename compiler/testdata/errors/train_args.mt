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
  seq = 1024 tokns
  batch = 8192 tokens
  optimizer = adamw(bata1 = 0.9, epss = 1e-8)
  lr = wsd(peek = 1e-3, warmpu = 3, decay = 4)
  eval = every(3, dat = "x", batchs = 3)
}
