// et_moe.mt: the published d20 shape: 2,429.2 M parameters, 561 M active for a token
model et_moe(L = 20, D = 64 * L, hd = 128, H = D / hd, V = 65536, E = 16, rate = 1.0 / 16, ema = 0.999) {
  init normal(1 / sqrt(D))

  block mlp(x, width) { return down: linear(relu2(up: linear(x, width)), D, init = zero) }

  block attn(x) {
    h = rmsnorm(x, weight = false)                // owns no weight, so it needs no name
    q = rmsnorm(rope(q: linear(h, D), hd, 10000.0), weight = false, per = hd)
    k = rmsnorm(rope(k: linear(h, D), hd, 10000.0), weight = false, per = hd)
    x += o: linear(attention(q, k, v: linear(h, D), heads = H, causal), D, init = zero)
  }
  block dense(x) {
    attn(x)
    x += mlp: mlp(rmsnorm(x, weight = false), 4 * D)
  }
  block sparse(x) {
    attn(x)
    x += moe: moe(rmsnorm(x, weight = false), experts = E, expert = mlp(width = 2 * D), shared = mlp(width = 2 * D),
                  router = threshold(rate = rate, ema = ema, gate = sigmoid, warmup = expert_choice(4000, pool = step)))
  }
  forward(tokens) {
    x = rmsnorm(wte: embed(tokens, V, D, init = normal(1.0)), weight = false)
    layer: dense(x)
    repeat L - 1 { layer: sparse(x) }
    return softcap(head: linear(rmsnorm(x, weight = false), V, init = zero), 15.0)
  }
}
