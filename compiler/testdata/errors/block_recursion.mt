model m(D = 64, L = 2, V = 256) {
  init normal(0.02)
  block a(x) { x = silu(x); a(x) }
  block b(x) { c(x) }
  block c(x) { x = relu(x); d(x) }
  block d(x) { b(x) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    a(x)
    b(x)
    return head: linear(x, V)
  }
}
