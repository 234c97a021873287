model m(D = 64, L = 2, V = 256) {
  init normal(0.02)
  block layer(x) {
    a = up: linear(x, 0)
    b = silu(a)
    c = dn: linear(b, 7)
    x += c
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(x, V)
  }
}
