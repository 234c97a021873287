// Widths in an expert are those of one row, however many rows a token has memory for.
model v(D = 16, L = 2, V = 64, E = 4) {
  init normal(0.1)
  block mlp(x) { return x + up: linear(x, 8) }
  block layer(x) { x += m: moe(rmsnorm(x, weight = false), experts = E, expert = mlp, router = topk(2)) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(x, V)
  }
}
