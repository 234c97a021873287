use "use_circle_b.mt"
model a(D = 1) { forward(tokens) { return x: linear(w: embed(tokens, 4, 4), 4) } }
