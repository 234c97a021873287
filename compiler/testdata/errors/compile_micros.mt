// args: --compile
model m(D = 64, L = 2, V = 256) {
  init normal(0.02)
  block layer(x) {
    h = n1: rmsnorm(x)
    x += down: linear(silu(up: linear(h, 4 * D)), D)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(norm: rmsnorm(x), V)
  }
}
train {
  seq = 8
  batch = 1000000007 rows
}
