model m(D = 12, V = 16) {
  init normal(0.02)
  block layer(x) { x += o: linear(x, D) }


  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat 2 { layer(x) }

    return head: linear(x, V)
  }
}
foo bar
baz 3
"str"
