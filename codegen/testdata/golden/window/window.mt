// Two kinds of layers, a tied head whose logits come in chunks, a soft cap after it.
model window(D = 32, L = 4, H = 4, KV = 2, F = 80, V = 20000) {
  init normal(0.02)

  block layer(x, window) {
    h = attn_norm: rmsnorm(x)
    q = q_norm: rmsnorm(q: linear(h, D), per = D / H)
    a = attention(rope(q, D / H), rope(k: linear(h, D / 2), D / H), v: linear(h, D / 2),
                  heads = H, kv = KV, causal, window = window)
    x += o: linear(a, D, bias)
    h = mlp_norm: layernorm(x)
    x += down: linear(gelu(up: linear(h, F, bias)), D)
  }

  forward(tokens) {
    x = wte: embed(tokens, V, D) + wpe: embed(position, 128, D)
    repeat L as i { layer(x, window = if i % 2 == 1 then 32 else none) }
    return softcap(head: linear(norm: rmsnorm(x), V, tie = wte), 30.0)
  }
}

train {
  data      = "*.txt"
  seq       = 128
  batch     = 1024 tokens
  steps     = 10
  optimizer = adamw(decay = 0.1)
  lr        = constant(peak = 1e-3)
}
