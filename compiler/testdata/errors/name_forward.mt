model a(D = 64) { init normal(0.02) }
model b(D = 64) { forward(token) { return x: linear(w: embed(token, 4, 4), 4) } }
model c(D = 64) { forward(tokens) { x = w: embed(tokens, 4, 4) } }
model d(D = 64) { forward(tokens = 3) { return x: linear(w: embed(tokens, 4, 4), 4) } }
