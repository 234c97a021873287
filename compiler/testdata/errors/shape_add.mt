model llama(D = 3584, F = 18944, L = 2, V = 256, H = 28) {
  init normal(0.02)
  block layer(x) {
    h = n: rmsnorm(x)
    a = attention(q: linear(h, D), k: linear(h, D), v: linear(h, D), heads = H, causal)
    x += o: linear(a, F)
    b = up: linear(x, F)
    x = x * b
    x = x - silu(b)
    x += dn: linear(b, D) + tokens2: linear(b, F)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(x, V)
  }
}
