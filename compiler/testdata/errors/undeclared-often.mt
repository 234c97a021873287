// Names that nothing declares, in many places: each is one slip, shown where it stands first.
model m(L = 2, V = 64, F = 2 * D) {
  init normal(0.02)

  block layer(x) {
    h = ln1: rmsnorm(x)
    x += o: linear(swish(g: linear(h, F)) * swish(u: linear(h, F)), D)
    x += p: linear(swish(h), D)
  }

  block other(x, w) {
    x += n: linear(x * gain, w)
  }

  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    other(x, D)
    return head: linear(x * gain, V)
  }
}
