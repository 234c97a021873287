model a = b(D = 3)
model b = c(DD = 3, E = )
model c(D = 64) { forward(tokens) { return x: linear(w: embed(tokens, 4, 4), 4) } }
