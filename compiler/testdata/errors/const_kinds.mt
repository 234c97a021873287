model m(D = 64, L = 2, V = 256, a = 1 + true, b = -none, c = not 3, d = if 1 then 2 else 3, e = 1 == "x", f = true and 2, g = "a" < "b") {
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
