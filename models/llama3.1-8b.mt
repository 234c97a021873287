// Llama 3.1 8B: 8,030,261,248 parameters.
use "llama.mt"

model llama3_1_8b = llama(D = 4096, L = 32, H = 32, KV = 8, F = 14336, V = 128256, theta = 5e5,
                          scaling = llama3(8.0, 1.0, 4.0, 8192))

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
