// args: --compile --groups 2 --micro-batch 2
model m(D = 64, L = 2, V = 256) {
  init normal(0.02)
  block mlp(x, width) { return down: linear(relu(up: linear(x, width)), D) }
  block layer(x) {
    x += moe: moe(rmsnorm(x, weight = false), experts = 4, expert = mlp(width = 2 * D),
                  router = expert_choice(rate = 1.0 / 4, pool = step))
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(norm: rmsnorm(x), V)
  }
}
train {
  seq = 8
  batch = 8 rows
}
