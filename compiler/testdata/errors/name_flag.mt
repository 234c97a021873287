model m(D = 64, L = 2, V = 256, bias = true) {
  init normal(0.02)
  block layer(x, causal = true) {
    x += up: linear(x, D, bias)
    x += a: linear(attention(x, x, x, heads = 4, causal), D, bias = bias)
    x += b: linear(x, D, bias = bias, bias = true)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(x, V)
  }
}
