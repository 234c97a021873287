model m(D = 64, L = 2, V = 256, a = ceil(7, 0), b = ceil(7, -2), c = ceil(9223372036854775807, 1000), d = sqrt(-1.0), e = ceil(1.5, 2)) {
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
