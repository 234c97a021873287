model m(D = 64, L = 2, V = 256) {
  init normal(0.02)
  block attn(x) { x += o: linear(x, D) }
  block layer(x) {
    h = rmsnorm(x)
    x += linear(h, D)
    x = silu(linear(h, D))
    x += up: linear(h, D)
    x += up: linear(h, D)
    q = linear(h, D)
    q = linear(q, D)
    x += q
    attn(x)
    attn(x)
  }
  forward(tokens) {
    x = embed(tokens, V, D)
    repeat L { layer(x) }
    return linear(x, V)
  }
}
