// GPT-2 (Radford et al., 2019): 124,439,808 parameters, and its three larger sizes as
// presets. One block, repeated; the head is the token table again, unless it is not tied.
model gpt2(D = 768, L = 12, H = 12, V = 50257, context = 1024, F = 4 * D, eps = 1e-5, tied = true) {
  preset medium { D = 1024, L = 24, H = 16 }
  preset large  { D = 1280, L = 36, H = 20 }
  preset xl     { D = 1600, L = 48, H = 25 }

  init normal(0.02)

  block layer(x) {
    h = ln1: layernorm(x, eps)
    a = attention(q: linear(h, D, bias), k: linear(h, D, bias), v: linear(h, D, bias), heads = H, causal)
    x += o: linear(a, D, bias, init = normal(0.02 / sqrt(2 * L)))
    h = ln2: layernorm(x, eps)
    x += down: linear(gelu(up: linear(h, F, bias)), D, bias, init = normal(0.02 / sqrt(2 * L)))
  }

  forward(tokens) {
    x = wte: embed(tokens, V, D) + wpe: embed(position, context, D)
    repeat L { layer(x) }
    return head: linear(ln: layernorm(x, eps), V, tie = if tied then wte else none)
  }

  weights hf {
    if tied { wte = same("wte", "lm_head") } else { wte = "wte" }
    wpe          = "wpe"
    layer[i].ln1 = "h.{i}.ln_1"
    layer[i].q, layer[i].k, layer[i].v = split(transpose("h.{i}.attn.c_attn"))
    layer[i].o    = transpose("h.{i}.attn.c_proj")
    layer[i].ln2  = "h.{i}.ln_2"
    layer[i].up   = transpose("h.{i}.mlp.c_fc")
    layer[i].down = transpose("h.{i}.mlp.c_proj")
    ln            = "ln_f"
    if not tied { head = "lm_head" }
  }
}

train {
  data      = "fineweb10B/*.bin"
  seq       = 1024
  batch     = 524288 tokens
  steps     = 19073
  optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.1)
  lr        = cosine(peak = 6e-4, warmup = 700, final = 0)
  clip      = 1.0
  eval      = every(250, data = "fineweb10B/val.bin")
  save      = every(1000, keep = 3)
  seed      = 1337
}
