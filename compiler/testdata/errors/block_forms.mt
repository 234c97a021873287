model m(D = 64, L = 2, V = 256) {
  init normal(0.02)
  block ret(x) { return silu(x) }
  block mut(x) { x = silu(x) }
  block none1(x) { y = silu(x) }
  block none2() { y = D }
  block rep(x) { repeat 3 { x = silu(x) } }
  block late(x) { return silu(x); x = relu(x) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    ret(x)
    y = mut(x)
    mut(silu(x))
    mut(tokens)
    silu(x)
    x += mut(x)
    repeat 2 { return x }
    return head: linear(x, V)
  }
}
