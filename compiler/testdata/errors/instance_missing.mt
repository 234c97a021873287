// args: --model b
model a(D, L, F = 4 * D) { forward(tokens) { return x: linear(w: embed(tokens, 4, 4), 4) } }
model b = a(F = 3)
