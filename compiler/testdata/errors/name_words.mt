model m(D = 64, L = 2, V = 256, mode = haff) {
  init nromal(0.02)
  block layer(x) {
    x = rope(x, 32, layout = interleafed)
    x = rope(x, 32, scaling = lama3(8.0, 1.0, 4.0, 8192))
    x = rope(x, 32, scaling = yran(8.0, 8192))
    x = rope(x, 32, scaling = llama3(8.0, 1.0, 4.0, orignal = 8192))
    x = rope(x, 32, scaling = llama3(8.0))
    x = gelu(x, tahn)
    x = gelu(x, approx = exakt)
    x = gelu(x, approx = "exact")
    x = gelu(x, approx = 3)
    x = rope(x, 32, scaling = nnone)
    x += a: linear(x, D, init = zerro)
    x += b: linear(x, D, init = unifrom(0.1))
    x += c: linear(x, D, bias = flase)
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(x, V, tie = wtee)
  }
}
