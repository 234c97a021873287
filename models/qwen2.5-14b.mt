// Qwen2.5 14B: 14,770,033,664 parameters.
use "llama.mt"

model qwen2_5_14b = llama(D = 5120, L = 48, H = 40, KV = 8, F = 13824, V = 152064, theta = 1e6, eps = 1e-5,
                          qkv_bias)

train {
  data      = "data/train/*.bin"
  seq       = 4096
  batch     = 1048576 tokens
  steps     = 20000
  optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.1)
  lr        = cosine(peak = 2e-4, warmup = 1000, final = 2e-5)
  clip      = 1.0
  eval      = every(250, data = "data/val/*.bin", batches = 20)
  save      = every(500, keep = 2)
  seed      = 1337
}
