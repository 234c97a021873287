model m(D = 64, L = 2, V = 256) {
  init normal(0.02)
  block layer(x) {
    h = n1: rmsnrm(x)
    h = n2: layernom(h)
    x += up: liner(silo(h), D)
    x = add(x, h)
    x = swiglu(x, h)
    x = quux(x)
  }
  forward(tokens) {
    x = wte: embd(tokens, V, D)
    repeat L { layr(x) }
    return head: linear(x, V)
  }
}
