// args: --model a
model a = cc(D = 3)
model b = c(DD = 3, 4, D = D)
model c(D = 64, tied = false) { init one
  forward(tokens) { return x: linear(w: embed(tokens, 4, 4), 4) } }
model e = c(D = 1, tide)
model f = c(D = 1, D = 2)
model g = x: c(D = 1)
