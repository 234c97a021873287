model m(D = 64, V = 256) {
  init normal(0.02)
  block start(t) { return wte: embed(t, V, D) }
  block last(x) { return head: linear(x, V) }
  forward(tokens) {
    x = start(tokens)
    return last(x)
  }
}
