// qwen2.5-7b.mt: 7,615,616,512 parameters
use "llama.mt"
model qwen2_5_7b = llama(D = 3584, L = 28, H = 28, KV = 4, F = 18944, V = 152064, theta = 1e6, eps = 1e-6, qkv_bias = true)
train { seq = 4096; batch = 524288 tokens }
