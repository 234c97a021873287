model m(D = 64, L = 2, V = 256, mode = half, act = none) {
  init normal(0.02)
  block layer(x) {
    x = gelu(x, approx = mode)
    x = gelu(x, approx = "exact")
    x = gelu(x, approx = 3)
    x = gelu(x, approx = act)
    x = rope(x, 32.0)
    x = rope(x, hd = none)
    x = rope(x, 32, theta = true)
    x = softcap(x, "15")
    x += a: linear(x, D, bias = 1)
    x += b: linear(x, D, init = 0.02)
    x += c: linear(x, D, init = normal(-1.0))
    x = rope(x, 32, scaling = llama3(8.0, 1.0, 4.0, "8192"))
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(x, V)
  }
}
