use "../../../models/llama.mt"
use "../../../models/gpt2.mt"
model a = llama(D = 64, L = 2, H = 4, F = 128, V = 256)
train {
  seq = 64
  batch = 8 rows
  lora(rank = 4, alpha = 8, targets = [q_proj, "mlp.down_proj", embed_tokens, c_attn])
}
