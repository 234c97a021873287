model m(D = 64, L = 2, V = 256) {
  init normal(0.02)
  block layer(x) {
    h = n: rmsnorm(x)
    k = linear(h, D)
    dead = silu(k)
    x += o: linear(h, D)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    y = wte2: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(x, V)
  }
}
