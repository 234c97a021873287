model m(D = 64, L = 2, V = 256, a = 9223372036854775807, b = a + 1, c = a * 2, d = -a - 2, e = 1e308 * 10.0) {
  init normal(0.02)
  block layer(x) {
    h = n1: rmsnorm(x)
    x += down: linear(silu(up: linear(h, 4 * D)), D)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(norm: rmsnorm(x), V)
  }
}
