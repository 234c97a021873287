model m(D = 64, L = 2, V = 256) {
  init trunc_normal(0.02)
  block layer(x) {
    h = n1: rmsnorm(x, epsilon = 1e-6)
    a = attention(h, h, h, num_heads = 4, is_causal = true)
    x += up: linear(swish(h), out_features = D)
    x = dropout(x, 0.1)
    x = tanh(x)
    x = concat(x, h)
    x = x + rope(h, head_dim = 16, rotary_dim = 4)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, embedding_dim = D)
    repeat L { layer(x) }
    return head: linear(x, V)
  }
}

train {
  seq          = 16
  batch_size   = 4
  weight_decay = 0.1
  grad_clip    = 1.0
  warmup       = 100
}
