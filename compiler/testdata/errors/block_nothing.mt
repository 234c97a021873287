model m(D = 64, L = 2, V = 256, deep = false) {
  init normal(0.02)
  block layer(x) { if deep { x = silu(x) } }
  block id(x) { return x }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    layer(x)
    x = id(x)
    return head: linear(x, V)
  }
}
