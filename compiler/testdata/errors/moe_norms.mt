// Norms in an expert own weights, so they have names; a tie, or groups that do not divide, is refused where it stands.
model m(D = 8, V = 32) {
  init normal(0.02)
  block mlp(x, width) { return down: linear(rmsnorm(up: linear(x, width)), D) }
  block heads(x, width) { return down: linear(norm: rmsnorm(up: linear(x, width), per = 5), D) }
  block layer(x) {
    x += a: moe(x, experts = 4, expert = mlp(width = 16), router = topk(2))
    x += b: moe(x, experts = 4, expert = heads(width = 16), router = topk(2))
  }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    layer: layer(x)
    return head: linear(x, V)
  }
}
