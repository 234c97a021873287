model m(D = 64, L = 2, V = 256) {
  init normal(0.02)
  block mlp(x, width) { return down: linear(relu2(up: linear(x, width)), D) }
  block layer(x) {
    x += moe: moe(x, experts = 4, expert = mlp(width = 2 * D), router = threshold(rate = 0.1))
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(x, V)
  }
}
