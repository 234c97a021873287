// Adapters on every linear of Qwen2.5 7B: 40,370,176 parameters learn, and the 7,615,616,512 of the
// base, which `mtc run --from DIR` takes from its folder, are there as bf16 weights alone.
use "llama.mt"

model qwen2_5_7b_lora = llama(D = 3584, L = 28, H = 28, KV = 4, F = 18944, V = 152064, theta = 1e6, eps = 1e-6,
                              qkv_bias)

train {
  data      = "data/train/"
  seq       = 4096
  batch     = 16 rows
  steps     = 1000
  optimizer = adamw(beta1 = 0.9, beta2 = 0.999, decay = 0.0)
  lr        = cosine(peak = 2e-4, warmup = 50, final = 0)
  clip      = 1.0
  eval      = every(100)
  save      = every(250, keep = 2)
  seed      = 1337
  lora(rank = 16, alpha = 32, targets = all)
}
