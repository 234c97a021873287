model m(D = 64, V = 256, E = 4) {
  init normal(0.02)
  block mlp(x, width) { return down: linear(silu(up: linear(x, width)), D) }
  block layer(x) {
    q = linear(rmsnorm(x, weight = false), D)
    x += o: linear(silu(q), D)
    x += moe: moe(rmsnorm(x, weight = false), experts = E, expert = mlp(width = 2 * D), router = topk(2))
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat 2 { layer(x) }
    return head: linear(norm: rmsnorm(x), V)
  }
}
train {
  seq = 64
  batch = 8 rows
  lora(rank = 4, alpha = 8, targets = [q, up, all, router])
}
