// A small llama that reads bytes: 1.05 M parameters, trained in two minutes on a laptop.
//   mtc run models/nano.mt --data PATH
model nano(D = 128, L = 4, H = 4, KV = 2, F = 512, V = 256, hd = D / H) {
  init normal(0.06)

  // One layer: attention, then a gated MLP, each on a normalised copy of the residual x.
  block layer(x) {
    h = attn_norm: rmsnorm(x)
    q = linear(h, H * hd)
    k = linear(h, KV * hd)
    v = linear(h, KV * hd)
    a = attention(rope(q, hd), rope(k, hd), v, heads = H, kv = KV, causal)
    x += o: linear(a, D, init = normal(0.02 / sqrt(2 * L)))
    h = mlp_norm: rmsnorm(x)
    x += down: linear(silu(gate: linear(h, F)) * up: linear(h, F), D, init = normal(0.02 / sqrt(2 * L)))
  }

  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(norm: rmsnorm(x), V, init = normal(0.02))
  }
}

train {
  seq       = 128
  batch     = 8 rows
  steps     = 1500
  optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.1)
  lr        = linear(peak = 4e-3, warmup = 60, final = 0)
  clip      = 1.0
  eval      = every(750, batches = 64)
  save      = every(750, keep = 2)
  seed      = 1337
}
