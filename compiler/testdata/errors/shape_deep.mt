model m(D = 32, L = 6, H = 4, V = 64, F = 100) {
  init normal(0.02)
  block mlp(x, W, O) {
    h = gelu(up: linear(x, W))
    return down: linear(h, O)
  }
  block attn(x, w) {
    q = linear(x, w)
    return o: linear(attention(q, k: linear(x, D), v: linear(x, D), heads = H, causal), D)
  }
  block layer(x, i) {
    x += a: attn(n1: rmsnorm(x), w = if i == 3 then D * 2 else D)
    x += m: mlp(n2: rmsnorm(x), F, if i == 4 then D + 1 else D)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L as i { layer(x, i) }
    return head: linear(norm: rmsnorm(x), V)
  }
}
