// Qwen2.5 7B: 7,615,616,512 parameters.
use "llama.mt"

model qwen2_5_7b = llama(D = 3584, L = 28, H = 28, KV = 4, F = 18944, V = 152064, theta = 1e6, eps = 1e-6,
                         qkv_bias)

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
