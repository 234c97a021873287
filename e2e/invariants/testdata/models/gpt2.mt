// Position table, layer norms, biases, exact gelu, tied head.
model gpt2(D = 32, L = 3, H = 2, V = 256, context = 32) {
  init normal(0.08)
  block layer(x) {
    h = ln1: layernorm(x)
    a = attention(q: linear(h, D, bias), k: linear(h, D, bias), v: linear(h, D, bias), heads = H, causal)
    x += o: linear(a, D, bias)
    h = ln2: layernorm(x)
    x += down: linear(gelu(up: linear(h, 4 * D, bias)), D, bias)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D) + wpe: embed(position, context, D)
    repeat L { layer(x) }
    return head: linear(ln: layernorm(x), V, tie = wte)
  }
}

train {
  seq   = 16
  batch = 8 rows
  steps = 12
  lr    = cosine(peak = 1e-2, warmup = 3, final = 1e-3)
  clip  = 1.0
  eval  = every(5, batches = 2)
  seed  = 7
}
