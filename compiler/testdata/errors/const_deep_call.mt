model m(D = 32, L = 2, V = 64) {
  init normal(0.02)
  block c(x, W) { return f: linear(x, W) }
  block b(x, W) { return c(x, W / 3) }
  block layer(x, W) { x += b(n: rmsnorm(x), W) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { repeat 2 as j { layer(x, 96 + j) } }
    return head: linear(norm: rmsnorm(x), V)
  }
}
