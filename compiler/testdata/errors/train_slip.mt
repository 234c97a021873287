model m(D = 12, V = 16) {
  init normal(0.02)
  block layer(x) {
    q = linear(x, D)
    x += o: linear(gelu(gelu(gelu(gelu(gelu(q))))), D)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat 2 { layer(x) }
    return head: linear(x, V)
  }
}
train {
  seq = 4
  batch = 4 rows
  sed = 3
}
