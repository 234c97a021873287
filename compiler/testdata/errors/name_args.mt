model m(D = 64, L = 2, V = 256) {
  init normal(0.02)
  block layer(x, width = 4) {
    h = n1: rmsnorm(x, esp = 1e-5, wieght = false)
    a = attention(h, h, h, head = 4, casual)
    x += up: linear(h, D, bais, D)
    x += dn: linear(x = h, h, D)
    x += e: linear(h, D, D, out = D)
    x = rope(x, 32, layuot = half)
    x = linear(h)
    x = linear()
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x, widht = 3) }
    layer(x, 1, 2)
    layer()
    return head: linear(x, V)
  }
}
