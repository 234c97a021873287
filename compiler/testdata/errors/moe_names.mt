model m(D = 64, L = 2, V = 256, E = 4) {
  init normal(0.02)
  block mlp(x, width) { return down: linear(relu2(up: linear(x, width)), D) }
  block a(x) { x += moe: moe(x, experts = E, expert = mpl(width = D), router = topk(2)) }
  block b(x) { x += moe: moe(x, experts = E, expert = mlp(widht = D), router = top_k(2)) }
  block c(x) { x += moe: moe(x, experts = E, expert = mlp(width = D), router = threshold(0.5, warmup = expert_choise(4), gates = sigmoid)) }
  block d(x) { x += moe: moe(x, experts = E, expert = mlp(width = D), router = topk(2, balance = aux(0.01, scope = sequence), scores = softmx)) }
  block e(x) { x += moe: moe(x, experts = E, expert = 2 * D, router = topk(2)) }
  block f(x) { x += moe: moe(x, experts = E, expert = mlp(width = D)) }
  block g(x) { x += moe: moe(x, experts = E, expert = mlp(width = D), router = threshold(0.5, warmup = quickly(4))) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    a(x); b(x); c(x); d(x); e(x); f(x)
    return head: linear(x, V)
  }
}
