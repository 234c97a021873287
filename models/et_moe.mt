// et_moe.mt: Expert Threshold routing (arXiv 2603.11535), the published d12 shape: 16 routed
// experts and a shared one of width 2 D, layer 0 dense. A token goes to each expert whose cutoff
// its logit exceeds, one on average. `--preset d20` is the larger one.
model et_moe(L = 12, D = 64 * L, hd = 128, H = D / hd, V = 65536, E = 16, rate = 1.0 / 16, ema = 0.999) {
  preset d20 { L = 20 }

  init normal(1 / sqrt(D))

  block mlp(x, width) { return down: linear(relu2(up: linear(x, width)), D, init = zero) }

  block attn(x) {
    h = rmsnorm(x, weight = false)
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

train {
  seq       = 2048
  batch     = 524288 tokens
  steps     = 19073
  optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.0)
  lr        = cosine(peak = 1e-3, warmup = 250, final = 1e-4)
  clip      = 1.0
  eval      = every(250, batches = 20)
  save      = every(1000, keep = 3)
  seed      = 1337
}
