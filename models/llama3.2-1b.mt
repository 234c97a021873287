// Llama 3.2 1B: 1,235,814,400 parameters, the head tied to the token table.
use "llama.mt"

model llama3_2_1b = llama(D = 2048, L = 16, H = 32, KV = 8, F = 8192, V = 128256, theta = 5e5,
                          scaling = llama3(32.0, 1.0, 4.0, 8192), tied)

train {
  data      = "data/train/*.bin"
  seq       = 4096
  batch     = 524288 tokens
  steps     = 20000
  optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.1)
  lr        = cosine(peak = 3e-4, warmup = 1000, final = 3e-5)
  clip      = 1.0
  eval      = every(250, data = "data/val/*.bin", batches = 20)
  save      = every(500, keep = 2)
  seed      = 1337
}
