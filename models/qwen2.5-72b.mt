// Qwen2.5 72B: 72,706,203,648 parameters.
use "llama.mt"

model qwen2_5_72b = llama(D = 8192, L = 80, H = 64, KV = 8, F = 29568, V = 152064, theta = 1e6, eps = 1e-5,
                          qkv_bias)

train {
  data      = "data/train/*.bin"
  seq       = 4096
  batch     = 2097152 tokens
  steps     = 20000
  optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.1)
  lr        = cosine(peak = 1e-4, warmup = 1000, final = 1e-5)
  clip      = 1.0
  eval      = every(250, data = "data/val/*.bin", batches = 20)
  save      = every(500, keep = 2)
  seed      = 1337
}
