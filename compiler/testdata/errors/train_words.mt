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
  seq = 1024
  batch = 8 rwos
  optimizer = adam()
  lr = cosin(peak = 1e-3)
  eval = evry(3)
  save = every(3, kep = 3)
  precision = bf61
  width = 2 bites
  seed = sede
  data = tinystories
}
