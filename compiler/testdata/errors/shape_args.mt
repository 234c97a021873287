model m(D = 60, H = 7, L = 2, V = 256, hd = 7) {
  init normal(0.02)
  block layer(x) {
    h = n: rmsnorm(x, per = hd)
    q = linear(x, 56)
    k = linear(x, 24)
    a = attention(q, k, k, heads = 8, kv = 4, causal)
    b = attention(q, k, k, heads = H, kv = 3, causal)
    c = attention(q, q, q, heads = 5, causal)
    r = rope(x, 16)
    s = rope(x, 15)
    x += o: linear(x, 0)
    x += t: linear(x, -5)
    y = softcap(x, 0)
    z = rmsnorm(x, eps = -1.0, weight = false)
    w = attention(x, x, x, heads = 6, window = 0, causal)
    x = rope(x, 10, theta = 0)
    x = rope(x, 10, scaling = llama3(8.0, 4.0, 1.0, 8192))
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    y = rmsnorm(tokens, weight = false)
    z = tokens + x
    v = wve: embed(x, V, D)
    repeat L { layer(x) }
    return head: linear(x, V)
  }
}
