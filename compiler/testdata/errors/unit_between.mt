model m(D = 64, L = 2, V = 256) {
  init normal(0.02)
  block layer(x) { x += up: linear(x, D) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    layer(x)
    x = mid: rmsnorm(x)
    x = x * 0.5
    layer(x)
    x += late: embed(position, 64, D)
    return head: linear(x, V)
  }
}
