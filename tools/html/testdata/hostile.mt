// The file's name is in every task: it must stay text wherever a page shows it.
// </script><script>document.title = "broken"</script> {{data}} <!-- --> ]]>
model m(D = 64, L = 2, V = 256) {
  init normal(0.02)
  block layer(x) { x += o: linear(x, D) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(x, V)
  }
}

train {
  seq       = 16
  batch     = 4 rows
  steps     = 10
  optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.1)
  lr        = constant(peak = 1e-3)
}
