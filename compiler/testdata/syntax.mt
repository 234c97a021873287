// One of everything that the models of models/ do not use.
model syntax(D = 64, L = 2, V = 256, E = 2 * D, deep = true, act = none, ntk = llama3(8.0, 1.0, 4.0, 8192), from = 0.5) {
  init uniform(0.05)

  block gate(x, width) { return down: linear(relu2(up: linear(x, width)), D, init = zero) }

  block mix(x, y, factor = 0.5) {
    x += factor * y - (y * y) * sqrt(from)
    y = -sigmoid(y)
  }

  block layer(x, skip, window = none, heads = 4) {
    h = norm1: layernorm(x, weight = false)
    r = rope(h, D / heads, scaling = ntk, layout = interleaved)
    a = attention(r, r, h, heads = heads, causal, window = window, cap = 50.0)
    if deep and window != none {
      a = softcap(a, 30.0)
    } else {
      a = gelu(a, exact)
    }
    mix(a, skip)
    x += first: gate(a + skip, ceil(E, 16))
    x += second: gate(relu(norm2: rmsnorm(x, per = 16)), E)
    y = proj: linear(x, D)
    x += back: linear(a, D, tie = proj) + y * from
  }

  forward(tokens) {
    x = wte: embed(tokens, V, D)
    s = x * 0.5
    repeat L as i { layer(x, s, window = if i % 2 == 0 then 16 else none) }
    return softcap(head: linear(rmsnorm(x, weight = false), V, tie = wte), 15.0)
  }
}

train { seq = 64; batch = 8 rows; precision = f32 }
