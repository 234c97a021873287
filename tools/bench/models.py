"""The PyTorch side of the training-step comparison: models/nano.mt and models/gpt2.mt."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, D, H, KV, bias, rope):
        super().__init__()
        self.H, self.KV, self.hd = H, KV, D // H
        self.q = nn.Linear(D, D, bias)
        self.k, self.v = nn.Linear(D, KV * self.hd, bias), nn.Linear(D, KV * self.hd, bias)
        self.o = nn.Linear(D, D, bias)
        self.rope = rope

    def turn(self, x):
        if self.rope is None:
            return x
        cos, sin = self.rope
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (f(x).view(B, T, n, self.hd).transpose(1, 2)
                   for f, n in ((self.q, self.H), (self.k, self.KV), (self.v, self.KV)))
        y = F.scaled_dot_product_attention(self.turn(q), self.turn(k), v, is_causal=True, enable_gqa=self.H != self.KV)
        return self.o(y.transpose(1, 2).reshape(B, T, D))


class Gated(nn.Module):
    def __init__(self, D, ff):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(D, ff, False), nn.Linear(D, ff, False), nn.Linear(ff, D, False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    def __init__(self, norm, attention, mlp, D):
        super().__init__()
        self.ln1, self.attention, self.ln2, self.mlp = norm(D), attention, norm(D), mlp

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Decoder(nn.Module):
    def __init__(self, layers, D, V, norm, positions, tied):
        super().__init__()
        self.wte, self.layers, self.ln = nn.Embedding(V, D), nn.ModuleList(layers), norm(D)
        self.wpe = nn.Embedding(positions, D) if positions else None
        self.head = nn.Linear(D, V, False)
        if tied:
            self.head.weight = self.wte.weight

    def forward(self, tokens):
        x = self.wte(tokens)
        if self.wpe is not None:
            x = x + self.wpe(torch.arange(tokens.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.ln(x))


def nano(D=128, L=4, H=4, KV=2, ff=512, V=256, T=256):
    angle = torch.arange(T)[:, None] * 10000.0 ** -(torch.arange(D // H // 2) / (D // H // 2))
    rope = (angle.cos(), angle.sin())
    layers = [Layer(lambda d: nn.RMSNorm(d, 1e-5), Attention(D, H, KV, False, rope), Gated(D, ff), D) for _ in range(L)]
    return Decoder(layers, D, V, lambda d: nn.RMSNorm(d, 1e-5), 0, False), V, 4, T, (0.9, 0.95)


def gpt2(D=768, L=12, H=12, V=50257, T=256):
    layers = [Layer(nn.LayerNorm, Attention(D, H, H, True, None),
                    nn.Sequential(nn.Linear(D, 4 * D), nn.GELU("tanh"), nn.Linear(4 * D, D)), D) for _ in range(L)]
    return Decoder(layers, D, V, nn.LayerNorm, 1024, True), V, 4, T, (0.9, 0.95)


BUILD = {"nano": nano, "gpt2": gpt2}
