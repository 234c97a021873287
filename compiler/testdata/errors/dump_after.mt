// args: --dump-after shape
model m(D = 1) { forward(tokens) { return h: linear(w: embed(tokens, 4, 4), 4) } }
