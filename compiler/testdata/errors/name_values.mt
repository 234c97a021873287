model m(D = 64, L = 2, V = 256) {
  init normal(0.02)
  block layer(x, width = 4) {
    h = n1: rmsnorm(x)
    x += up: linear(hh, DD)
    y += h
    x = dn: linear(n1, widht)
    x += wpe: embed(position, 10, D)
    x = silu
    x = other
  }
  block other(x) { x = silu(x) }
  forward(tokens) {
    x = wte: embed(token, V, D)
    repeat LL as i { layer(x, i) }
    return head: linear(xx, V)
  }
}
