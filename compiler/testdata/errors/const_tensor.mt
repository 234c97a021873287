model m(D = 64, V = 256) {
  init normal(0.02)
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    y = up: linear(x, x)
    z = dn: linear(y, D * y)
    s = D
    r = rmsnorm(D, weight = false)
    w = x + 1
    u = x / 2.0
    t = x < w
    return head: linear(z, V)
  }
}
