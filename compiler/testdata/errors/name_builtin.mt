model B(T = 64, tokens = 2, V = 256, D = 4) {
  init normal(0.02)
  block position(x) { x = silu(x) }
  block layer(x, T = 3) { x = silu(x) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    tokens = relu(x)
    repeat 2 as B { layer(x) }
    position(x)
    return head: linear(x, V)
  }
}
