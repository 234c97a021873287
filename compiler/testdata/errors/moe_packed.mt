model pools(D = 16, V = 32) {
  init normal(0.02)
  block mlp(x, width) { return down: linear(gelu(up: linear(x, width)), D) }
  block own(x)  { x += moe: moe(x, experts = 4, expert = mlp(width = D), router = expert_choice(0.5, pool = sequence)) }
  block warm(x) { x += moe: moe(x, experts = 4, expert = mlp(width = D), router = threshold(0.5, warmup = expert_choice(2, pool = sequence))) }
  block fine(x) { x += moe: moe(x, experts = 4, expert = mlp(width = D), router = expert_choice(0.5, pool = micro)) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    own(x)
    warm(x)
    fine(x)
    return head: linear(x, V)
  }
}
train {
  seq       = 8
  batch     = 4 rows
  documents = packed
}
