// Constants of routers that are possible, and do nothing or not what they seem.
model m(D = 8, V = 32) {
  init normal(0.02)
  block mlp(x) { return down: linear(up: linear(x, 8), D) }
  block layer(x) {
    x += a: moe(x, experts = 4, expert = mlp, router = threshold(0.25, ema = 0.9, warmup = expert_choice(100)))
    x += b: moe(x, experts = 4, expert = mlp, router = threshold(0.25, ema = 0.9, warmup = causal(101)))
    x += c: moe(x, experts = 4, expert = mlp, router = threshold(0.25, ema = 0.9, warmup = causal(81)))
    x += d: moe(x, experts = 4, expert = mlp, router = threshold(0.25))
    x += e: moe(x, experts = 4, expert = mlp, router = expert_choice(0.25, ema = 0.999))
    x += f: moe(x, experts = 4, expert = mlp, router = threshold(1.0, ema = 0.9))
    x += g: moe(x, experts = 4, expert = mlp, router = threshold(0.25, ema = 0.9, capacity = 0.01))
    x += h: moe(x, experts = 4, expert = mlp, router = threshold(0.25, ema = 0.9), rows = 1)
    x += i: moe(x, experts = 4, expert = mlp, router = topk(4))
    x += j: moe(x, experts = 4, expert = mlp, router = topk(2, balance = aux(0.0)))
    x += k: moe(x, experts = 4, expert = mlp, router = topk(2, balance = lossfree(1.5)))
    x += l: moe(x, experts = 4, expert = mlp, router = topk(2), init = zero)
    x += m: moe(x, experts = 4, expert = mlp, router = threshold(0.25, ema = 0.9, warmup = causal(20)))
    x += n: moe(x, experts = 4, expert = mlp, router = topk(2, balance = quantile))
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    layer: layer(x)
    return head: linear(x, V)
  }
}
train { seq = 16; batch = 64 tokens; steps = 100; lr = wsd(peak = 1e-3, warmup = 2, decay = 20) }
