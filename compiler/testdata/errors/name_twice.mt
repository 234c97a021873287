model m(D = 64, D = 65, L = 2, V = 256) {
  init normal(0.02)
  init zero
  preset a { D = 1, D = 2 }
  preset a { D = 3 }
  block layer(x, x) { x = silu(x) }
  block layer(x) { x = silu(x) }
  block silu(x) { x = relu(x) }
  block wide(x, D) { x = relu(x) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    D = wte2: embed(tokens, V, D)
    repeat L as x { layer(x) }
    repeat L as L { layer(x) }
    return head: linear(x, V)
  }
  forward(tokens) { return tokens }
  weights hf { wte = "a" }
  weights hf { wte = "a" }
}
model m(D = 1) { forward(tokens) { return h: linear(wte: embed(tokens, 4, 4), 4) } }
train { seq = 4; batch = 1 rows }
train { seq = 4; batch = 1 rows }
