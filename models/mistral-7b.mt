// Mistral 7B v0.1: 7,241,732,096 parameters, a sliding window of 4096 positions.
use "llama.mt"

model mistral_7b = llama(D = 4096, L = 32, H = 32, KV = 8, F = 14336, V = 32000, window = 4096)

train {
  data      = "data/train/*.bin"
  seq       = 8192
  batch     = 1048576 tokens
  steps     = 20000
  optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.1)
  lr        = cosine(peak = 3e-4, warmup = 1000, final = 3e-5)
  clip      = 1.0
  eval      = every(250, data = "data/val/*.bin", batches = 20)
  save      = every(500, keep = 2)
  seed      = 1337
}
