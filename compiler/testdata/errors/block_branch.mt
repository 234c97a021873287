model m(D = 64, L = 2, V = 256, fast = false, n = none) {
  init normal(0.02)
  block layer(x, k) {
    if fast { y = silu(x) }
    if k > 1 { x = relu(x) } else { z = D }
    x += y
  }
  block maybe(x, c) { if c { return silu(x) } }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    layer(x, 2)
    x = maybe(x, fast)
    if n { x = silu(x) }
    if n > 3 { x = silu(x) }
    return head: linear(x, V)
  }
}
