// Adapters on some linears of a tied llama, in one layer on more than in the other. Its weights are
// those of runtime/hf/testdata/llama3.
use "../../../../models/llama.mt"

model tiny_lora = llama(D = 32, L = 2, H = 4, KV = 2, F = 40, V = 48, hd = 16, theta = 5e5, tied,
                        scaling = llama3(8.0, 1.0, 4.0, 16))

train {
  width     = 2 bytes
  seq       = 16
  batch     = 8 rows
  steps     = 12
  optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.1)
  lr        = cosine(peak = 1e-2, warmup = 3, final = 1e-3)
  clip      = 1.0
  eval      = every(5, batches = 2)
  seed      = 42
  lora(rank = 3, alpha = 6, targets = [q, v, "layer[1].down"])
}
