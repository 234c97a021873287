// et.mt: a small mixture for comparing routers: 61 M parameters, of which a token passes 17 M. The
// router is a parameter; `dense` has a wide layer, of as many parameters a token, in its place.
// `rate` is the part of the learning rate that the matrices of mlps have, `own` that of routed
// experts: a matrix is rate times what Adam moves.
model et(L = 6, D = 384, hd = 64, H = D / hd, V = 8192, E = 16, W = 4 * D, rate = 1.0, own = rate, router = none) {
  init normal(1 / sqrt(D))

  // (r * down) * relu2((r * up) x), with one product by a constant
  block mlp(x, width, r = rate) {
    h = relu2(up: linear(x, width, init = normal(1 / (r * sqrt(D)))))
    return r * r * r * down: linear(h, D, init = zero)
  }

  block attn(x) {
    h = rmsnorm(x, weight = false)
    q = rmsnorm(rope(q: linear(h, D), hd), weight = false, per = hd)
    k = rmsnorm(rope(k: linear(h, D), hd), weight = false, per = hd)
    x += o: linear(attention(q, k, v: linear(h, D), heads = H, causal), D, init = zero)
  }
  block dense(x, width) {
    attn(x)
    x += mlp: mlp(rmsnorm(x, weight = false), width)
  }
  block sparse(x) {
    attn(x)
    x += moe: moe(rmsnorm(x, weight = false), experts = E, expert = mlp(width = 2 * D, r = own), shared = mlp(width = 2 * D),
                  router = router)
  }

  forward(tokens) {
    x = rmsnorm(wte: embed(tokens, V, D, init = normal(0.02)), weight = false)
    layer: dense(x, 4 * D)
    if router == none {
      repeat L - 1 { layer: dense(x, W) }
    } else {
      repeat L - 1 { layer: sparse(x) }
    }
    return softcap(head: linear(rmsnorm(x, weight = false), V, init = zero), 15.0)
  }
}

train {
  seq       = 512
  batch     = 65536 tokens
  steps     = 1000
  optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.0)
  lr        = wsd(peak = 3e-3, warmup = 50, decay = 200, final = 0)
  clip      = 1.0
  eval      = every(400, batches = 80)
  seed      = 1
}
