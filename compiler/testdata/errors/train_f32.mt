model m(D = 12, V = 16) {
  init normal(0.02)
  block layer(x) { x += u: linear(x, D) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat 2 { layer(x) }
    return head: linear(x, V)
  }
}
train {
  seq = 4
  batch = 4 rows
  steps = 2
  lr = constant(peak = 1e-99)
  optimizer = adamw(eps = 1e-70)
  clip = 1e60
}
