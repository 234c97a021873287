// Qwen2.5 0.5B: 494,032,768 parameters, the head tied to the token table.
use "llama.mt"

model qwen2_5_0_5b = llama(D = 896, L = 24, H = 14, KV = 2, F = 4864, V = 151936, theta = 1e6, eps = 1e-6,
                           qkv_bias, tied)

train {
  data      = "data/train/*.bin"
  seq       = 4096
  batch     = 524288 tokens
  steps     = 20000
  optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.1)
  lr        = cosine(peak = 4e-4, warmup = 1000, final = 4e-5)
  clip      = 1.0
  eval      = every(250, data = "data/val/*.bin", batches = 20)
  save      = every(500, keep = 2)
  seed      = 1337
}
