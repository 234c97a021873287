model m(D = 12, V = 16, F = mlp(width = 2 * D)) {
  init normal(0.02)
  block mlp(x, width) { x += o: linear(gelu(up: linear(x, width)), D) }
  block layer(x, f) { f(x) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat 2 { layer(x, f = mlp(width = 2 * D)) }
    return head: linear(x, V)
  }
}
