// A mixture whose training PyTorch's is compared with: tools/fixtures/routers.py.
model curves(D = 32, V = 128, E = 4, L = 3, router = none) {
  init normal(1 / sqrt(D))

  block mlp(x, width) { return down: linear(relu2(up: linear(x, width)), D, init = zero) }

  block attn(x) {
    h = rmsnorm(x, weight = false)
    q = rmsnorm(rope(q: linear(h, D), 16), weight = false, per = 16)
    k = rmsnorm(rope(k: linear(h, D), 16), weight = false, per = 16)
    x += o: linear(attention(q, k, v: linear(h, D), heads = 2, causal), D, init = zero)
  }
  block dense(x) {
    attn(x)
    x += mlp: mlp(rmsnorm(x, weight = false), 4 * D)
  }
  block sparse(x) {
    attn(x)
    x += moe: moe(rmsnorm(x, weight = false), experts = E, expert = mlp(width = 2 * D), shared = mlp(width = 2 * D),
                  router = router)
  }

  forward(tokens) {
    x = rmsnorm(wte: embed(tokens, V, D, init = normal(0.02)), weight = false)
    layer: dense(x)
    repeat L - 1 { layer: sparse(x) }
    return softcap(head: linear(rmsnorm(x, weight = false), V, init = zero), 15.0)
  }
}

train {
  seq       = 32
  batch     = 512 tokens
  steps     = 120
  optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.0)
  lr        = wsd(peak = 3e-3, warmup = 10, decay = 30, final = 0)
  clip      = 1.0
  seed      = 1
}
