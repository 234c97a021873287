model m(D = 64, L = 2, V = 256) {
  init normal(0.02)
  block two(x, y, n) { x += y * n }
  block wide(x, n) { x += up: linear(x, n) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    z = silu(x)
    y = relu(x)
    two(z, D, 2)
    wide(y, x)
    head: wide(x, D)
    return head: linear(x, V)
  }
}
