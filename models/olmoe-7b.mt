// olmoe-7b.mt: OLMoE 1B-7B: 64 experts, of which a token takes eight.
use "qwen3-moe.mt"
model olmoe_7b = qwen3_moe(D = 2048, L = 16, H = 16, KV = 16, F = 1024, V = 50304, E = 64, K = 8, hd = 128, theta = 10000.0,
                           eps = 1e-5,
                           head_norm = false, renorm = false, alpha = 0.01)

train {
  seq       = 4096
  batch     = 64 rows
  steps     = 10000
  optimizer = adamw(beta1 = 0.9, beta2 = 0.95, decay = 0.1)
  lr        = cosine(peak = 2e-5, warmup = 200, final = 2e-6)
  clip      = 1.0
  seed      = 1
}
