model m(D = 64, V = 256, n = T) {
  init normal(0.02)
  forward(tokens) {
    x = wte: embed(tokens, V, D) + wpe: embed(position, B, D)
    return head: linear(x, V)
  }
}
