model m(D = 64, V = 256) {
  init normal(0.02)
  block layer(x, n) { x += up: linear(x, D, init = normal(0.02 / sqrt(2 * x))) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    if x { x = silu(x) }
    repeat x { layer(x, 1) }
    y = gelu(x, approx = x)
    y = softcap(x, ceil(x, 3))
    layer(x, if y then 1 else 2)
    return head: linear(x, V, tie = if x then wte else none)
  }
}
