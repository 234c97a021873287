// A dense model of 120 billion parameters: Llama's layer, 76 times at D = 12288. A step is so
// small because the inputs of all layers wait for backward, 1.9 MB a token, and because beside
// its state 1.5 TB of host memory hold neither those nor the sums of several groups' gradients.
use "llama.mt"

model dense_120b = llama(D = 12288, L = 76, H = 96, KV = 8, F = 32768, V = 128256, theta = 5e5)

train {
  data      = "data/train/*.bin"
  seq       = 4096
  batch     = 32768 tokens
  steps     = 10000
  optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.1)
  lr        = cosine(peak = 8e-5, warmup = 1000, final = 8e-6)
  clip      = 1.0
  eval      = every(250, data = "data/val/*.bin", batches = 20)
  save      = every(500, keep = 2)
  seed      = 1337
}
