// Qwen2.5 32B: 32,763,876,352 parameters.
use "llama.mt"

model qwen2_5_32b = llama(D = 5120, L = 64, H = 40, KV = 8, F = 27648, V = 152064, theta = 1e6, eps = 1e-5,
                          qkv_bias)

train {
  data      = "data/train/*.bin"
  seq       = 4096
  batch     = 2097152 tokens
  steps     = 20000
  optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.1)
  lr        = cosine(peak = 1.5e-4, warmup = 1000, final = 1.5e-5)
  clip      = 1.0
  eval      = every(250, data = "data/val/*.bin", batches = 20)
  save      = every(500, keep = 2)
  seed      = 1337
}
