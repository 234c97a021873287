model m(D = 64, L = 2, V = 256) {
  init normal(0.02)
  block layer(x) { x += o: linear(x, D) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return softcap(rmsnorm(head: linear(x, V), weight = false), 15.0)
  }
}
