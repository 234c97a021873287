"""Writes a Hugging Face folder of Qwen2.5 7B's shapes with made-up bf16 weights, to time adapters on.

    python3 tools/cuda/lorabase.py DIR TOKENS      15.2 GB; and TOKENS, uint16 ids to train on
"""

import json
import os
import random
import sys

D, L, KV, F, V = 3584, 28, 512, 18944, 152064
random.seed(1)
# Low bytes as they come; high bytes 0x3c or 0xbc: numbers of either sign, from 0.0078 to 0.031.
HIGH = bytes(0x3C if b < 128 else 0xBC for b in range(256))


def block(n):
    raw = bytearray(random.randbytes(n))
    raw[1::2] = raw[1::2].translate(HIGH)
    return bytes(raw)


def tensors():
    yield "model.embed_tokens.weight", (V, D)
    for i in range(L):
        p = f"model.layers.{i}."
        yield p + "input_layernorm.weight", (D,)
        for name, rows in (("q", D), ("k", KV), ("v", KV)):
            yield p + f"self_attn.{name}_proj.weight", (rows, D)
            yield p + f"self_attn.{name}_proj.bias", (rows,)
        yield p + "self_attn.o_proj.weight", (D, D)
        yield p + "post_attention_layernorm.weight", (D,)
        yield p + "mlp.gate_proj.weight", (F, D)
        yield p + "mlp.up_proj.weight", (F, D)
        yield p + "mlp.down_proj.weight", (D, F)
    yield "model.norm.weight", (D,)
    yield "lm_head.weight", (V, D)


def main(folder, tokens):
    os.makedirs(folder, exist_ok=True)
    header, at = {}, 0
    for name, shape in tensors():
        n = 2
        for d in shape:
            n *= d
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    piece = block(64 << 20)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        while at > 0:
            f.write(piece[:at])
            at -= len(piece)
    config = dict(
        architectures=["Qwen2ForCausalLM"], model_type="qwen2", hidden_size=D, num_hidden_layers=L, num_attention_heads=28,
        num_key_value_heads=4, intermediate_size=F, vocab_size=V, rms_norm_eps=1e-6, rope_theta=1e6, rope_scaling=None, hidden_act="silu",
        max_position_embeddings=32768, tie_word_embeddings=False, use_sliding_window=False, sliding_window=None, torch_dtype="bfloat16")
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f, indent=2)
    with open(tokens, "wb") as f:
        f.write(random.randbytes(2 * 1_200_000))


if __name__ == "__main__":
    main(*sys.argv[1:])
