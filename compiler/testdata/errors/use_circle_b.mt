use "use_circle_a.mt"
model b(D = 1) { forward(tokens) { return x: linear(w: embed(tokens, 4, 4), 4) } }
