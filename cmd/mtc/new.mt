// NAME: a small language model that reads bytes. Train it with
//   mtc run NAME.mt --data FILE-OR-FOLDER
//
// The numbers on top are parameters. Change one for a run with --set D=256, or name a set of
// them in a preset. A later default may use an earlier parameter.
model NAME(D = 128,     // width of the residual
           L = 4,       // layers
           H = 4,       // attention heads
           V = 256,     // vocabulary: one token for each byte
           hd = D / H,  // width of a head
           F = 3 * D) {  // width inside the MLP
  preset small { D = 64, L = 2 }

  // How the weights of embed and linear start, where they do not say it themselves.
  init normal(0.02)

  // A block called in forward is what streams: its weights travel together. `x += ...` adds to the
  // residual. A name before a call, as in `o: linear(...)`, names its weights; h, q, k and v name
  // those of the call on their right side.
  block layer(x) {
    h = attn_norm: rmsnorm(x)
    q = linear(h, D)
    k = linear(h, D)
    v = linear(h, D)
    a = attention(rope(q, hd), rope(k, hd), v, heads = H, causal)
    x += o: linear(a, D)

    h = mlp_norm: rmsnorm(x)
    x += down: linear(silu(gate: linear(h, F)) * up: linear(h, F), D)
  }

  // From tokens [B, T] to logits [B, T, V]; the loss is next-token cross-entropy.
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    repeat L { layer(x) }
    return head: linear(norm: rmsnorm(x), V)
  }
}

// How it is trained. A field is changed for a run with --set train.steps=1000.
train {
  seq       = 128                     // tokens of a sequence
  batch     = 4096 tokens             // of a step; how it is cut into micro-batches is the planner's business
  steps     = 500
  optimizer = adamw(decay = 0.1)
  lr        = cosine(peak = 2e-3, warmup = 50, final = 2e-4)
  clip      = 1.0                     // largest norm of the gradient
  save      = every(250, keep = 2)
  seed      = 1337
}
