model m(D = 12, V = 16) {
  init normal(0.02)
  block layer(x) { x += o: linear(x, D) }
  block spare(x) { x += o: linear(x, D) }
  block branch(x) { x += o: linear(x, D) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat 2 { layer(x) }
    if D > 100 { branch(x) }
    return head: linear(x, V)
  }
}
