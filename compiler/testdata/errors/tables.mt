model m(D = 64, L = 2, V = 256) {
  init normal(0.02)
  block layer(x) { x += o: linear(x, D) }
  forward(tokens) {
    x = wte: embed(tokens, V, D) + wt2: embed(tokens, 300, D) + wpe: embed(position, 512, D)
    repeat L { layer(x) }
    return head: linear(x, V)
  }
}
train { seq = 1024; batch = 8 rows }
