model m(D = 64, L = 2, V = 256, E = 4) {
  init normal(0.02)
  block mlp(x, width) { return down: linear(relu2(up: linear(x, width)), D) }
  block mixes(x) { return o: linear(attention(q: linear(x, D), k: linear(x, D), v: linear(x, D), heads = 4, causal), D) }
  block keeps(x) { x += o: linear(x, D) }
  block rare(x)   { x += moe: moe(x, experts = E, expert = mlp(width = D), router = threshold(rate = 0.00001)) }
  block share(x)  { x += moe: moe(x, experts = E, expert = mlp(width = D), router = threshold(rate = 1.5, ema = 1.0, capacity = -1)) }
  block many(x)   { x += moe: moe(x, experts = E, expert = mlp(width = D), router = topk(5, zloss = -1.0, scale = 0)) }
  block few(x)    { x += moe: moe(x, experts = E, expert = mlp(width = D), router = topk(0, balance = lossfree(u = 0))) }
  block all(x)    { x += moe: moe(x, experts = E, expert = mlp(width = D), router = topk(4, balance = quantile)) }
  block pools(x)  { x += moe: moe(x, experts = E, expert = mlp(width = D), router = expert_choice(0.01, pool = sequence)) }
  block warm(x)   { x += moe: moe(x, experts = E, expert = mlp(width = D), router = threshold(0.25, warmup = causal(0))) }
  block norm(x)   { x += moe: moe(x, experts = E, expert = mixes(), router = topk(2)) }
  block nothing(x) { x += moe: moe(x, experts = E, expert = keeps(), router = topk(2)) }
  block open(x)   { x += moe: moe(x, experts = E, expert = mlp(), router = topk(2)) }
  block zero(x)   { x += moe: moe(x, experts = 0, expert = mlp(width = D), router = topk(2)) }
  block rows(x)   { x += moe: moe(x, experts = E, expert = mlp(width = D), router = threshold(0.5), rows = 1) }
  block unnamed(x) { x += moe(x, experts = E, expert = mlp(width = D), router = topk(2)) }
  block one(x)    { x += moe: moe(x, experts = E, expert = mlp(width = D), router = topk(1, renorm)) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    rare(x); share(x); many(x); few(x); all(x); pools(x); warm(x); norm(x); nothing(x); open(x); zero(x); rows(x); unnamed(x); one(x)
    return head: linear(x, V)
  }
}
train { seq = 64; batch = 8 rows; steps = 10; lr = 1e-3 }
