// et_moe_nano.mt: a mixture of experts by Expert Threshold routing that learns in seconds: bytes
// for tokens, no tokenizer. Each token goes to every expert whose cutoff its logit exceeds.
model et_moe_nano(L = 4, D = 128, H = 4, V = 256, E = 8, rate = 1.0 / 8, ema = 0.95) {
  init normal(1 / sqrt(D))

  block mlp(x, width) { return down: linear(relu2(up: linear(x, width)), D, init = zero) }

  block attn(x) {
    h = rmsnorm(x, weight = false)
    q = rmsnorm(rope(q: linear(h, D), D / H, 10000.0), weight = false, per = D / H)
    k = rmsnorm(rope(k: linear(h, D), D / H, 10000.0), weight = false, per = D / H)
    x += o: linear(attention(q, k, v: linear(h, D), heads = H, causal), D, init = zero)
  }
  block dense(x) {
    attn(x)
    x += mlp: mlp(rmsnorm(x, weight = false), 4 * D)
  }
  block sparse(x) {
    attn(x)
    x += moe: moe(rmsnorm(x, weight = false), experts = E, expert = mlp(width = 2 * D), shared = mlp(width = 2 * D),
                  router = threshold(rate = rate, ema = ema, gate = sigmoid, warmup = causal(100)))
  }
  forward(tokens) {
    x = rmsnorm(wte: embed(tokens, V, D, init = normal(1.0)), weight = false)
    layer: dense(x)
    repeat L - 1 { layer: sparse(x) }
    return softcap(head: linear(rmsnorm(x, weight = false), V, init = zero), 15.0)
  }
}

train {
  seq       = 256
  batch     = 8192 tokens
  steps     = 400
  optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.1)
  lr        = cosine(peak = 3e-3, warmup = 40, final = 3e-4)
  clip      = 1.0
  eval      = every(100, batches = 16)
  seed      = 1337
}
