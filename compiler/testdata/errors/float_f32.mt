model m(D = 12, V = 16, E = 1e-300) {
  init normal(1e300)
  block layer(x) {
    h = rmsnorm(softcap(x, E))
    x += 1e-60 * o: linear(x, D)
    x += u: linear(1e39 * x, D, init = uniform(1e-50))
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat 2 { layer(x) }
    return head: linear(x, V)
  }
}
