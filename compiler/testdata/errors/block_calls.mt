model m(D = 64, L = 2, V = 256) {
  init normal(0.02)
  block layer(x, width = 4) { x += up: linear(x, width) }
  block two(x, y, n) { x += y * n }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    z = silu(x)
    layer(x, z)
    layer(x, width = 3)
    two(x, z, x)
    two(x, D, 2)
    head: layer(x)
    return head: linear(x, V)
  }
}
