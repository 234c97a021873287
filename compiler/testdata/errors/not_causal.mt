model m(D = 12, V = 16, C = false) {
  init normal(0.02)
  block layer(x) {
    q = linear(x, D)
    a = attention(q, q, q, heads = 2)
    b = attention(q, q, q, heads = 2, window = 4)
    c = attention(q, q, q, heads = 2, causal = C)
    d = attention(q, q, q, heads = 2, causal)
    x += o: linear(a + b + c + d, D)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat 2 { layer(x) }
    return head: linear(x, V)
  }
}
