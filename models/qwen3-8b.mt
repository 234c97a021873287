// Qwen3 8B: 8,190,735,360 parameters.
use "llama.mt"

model qwen3_8b = llama(D = 4096, L = 36, H = 32, KV = 8, F = 12288, V = 151936, hd = 128, theta = 1e6, eps = 1e-6,
                       qk_norm)

train {
  data      = "data/train/*.bin"
  seq       = 4096
  batch     = 1048576 tokens
  steps     = 20000
  optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.1)
  lr        = cosine(peak = 3e-4, warmup = 1000, final = 3e-5)
  clip      = 1.0
  eval      = every(250, data = "data/val/*.bin", batches = 20)
  save      = every(500, keep = 2)
  seed      = 1337
}
