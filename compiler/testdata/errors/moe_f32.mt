// Constants of routers that f32 does not hold.
model m(D = 8, V = 32) {
  init normal(0.02)
  block mlp(x) { return down: linear(up: linear(x, 8), D) }
  block layer(x) {
    x += a: moe(x, experts = 4, expert = mlp, router = threshold(0.25, ema = 0.99999999))
    x += b: moe(x, experts = 4, expert = mlp, router = topk(2, balance = aux(1e-50)))
    x += c: moe(x, experts = 4, expert = mlp, router = topk(2, balance = lossfree(1e-50)))
    x += d: moe(x, experts = 4, expert = mlp, router = topk(2, zloss = 1e40))
    x += e: moe(x, experts = 4, expert = mlp, router = topk(2, scale = 1e-50))
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    layer: layer(x)
    return head: linear(x, V)
  }
}
