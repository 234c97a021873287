// Numbers that f32 does not hold, and what comes of large ones.
model m(D = 64, L = 2, V = 256) {
  init normal(0.02)
  block layer(x) { x += up: linear(x, D) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(x, V)
  }
}

train {
  seq       = 16
  batch     = 4 rows
  steps     = 999999999999999999
  lr        = 20.0
  optimizer = adamw(beta1 = 0.9999999999, beta2 = 0.99999999999, decay = 0.1)
}
