model m(D = 64, V = 256) {
  init normal(0.02)
  block two(x, y) { x += y; y = silu(x) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    two(x, x)
    return head: linear(x, V)
  }
}
