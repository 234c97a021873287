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
  seq       = 1K
  batch     = 512k tokens
  steps     = 5 MiB
  data      = data/*.bin
}
