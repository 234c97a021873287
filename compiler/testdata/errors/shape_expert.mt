model m(D = 32, L = 4, V = 64) {
  init normal(0.02)
  block mlp(x, W) { return down: linear(silu(gate: linear(x, W)) * up: linear(x, W + 1), D) }
  block layer(x) {
    x += moe: moe(n: rmsnorm(x), experts = 4, expert = mlp(W = 8), router = topk(2))
    x += moe2: moe(rmsnorm(x, weight = false), experts = 4, expert = mlp(W = 8), shared = mlp(W = 7), router = topk(5))
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(norm: rmsnorm(x), V)
  }
}
