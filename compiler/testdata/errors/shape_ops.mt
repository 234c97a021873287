model m(D = 64, L = 2, V = 256) {
  init normal(0.02)
  block layer(x) {
    b = up: linear(x, 2 * D)
    y = x * b
    z = x - silu(b)
    w = x + b
    v = (x + x) * (b + b)
    x += dn: linear(b, D)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(x, V)
  }
}
