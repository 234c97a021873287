"""Trains one model twice, by a program of mtc and by PyTorch, and compares the losses.

  train_peers.py PROGRAM DATA.bin OUT [--steps N] [--micro ROWS] [--device cpu] [--compile] [--seconds S] [--set K=V]

PROGRAM is one of models/gpt2.mt at any size. It runs first: once for a step with a learning rate
that changes nothing, whose checkpoint gives PyTorch its weights, and once in earnest. PyTorch
then reads the same rows in the same order, with the settings that the run's record holds: AdamW
in float32, weight decay on matrices, clipping by the global norm, the schedule. Its products are
in bfloat16 by autocast on a GPU, in float32 on a CPU. Both curves go to OUT, and the last line
says how far the means of the last tenth of the steps are apart; 0.5 % is allowed.
"""
import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

TOLERANCE = 5e-3
WORD = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


# ---- the order of the data: runtime/data/order.go and loader.go ---------------------------------


def mix(x):
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & WORD
    return x ^ x >> 31


def key(seed, epoch, purpose):
    a = mix((seed + GOLDEN) & WORD)
    a = mix((a + epoch * GOLDEN + 1) & WORD)
    return mix((a + purpose * GOLDEN + 2) & WORD)


def permute(i, n, k):
    half = ((n - 1).bit_length() + 1) // 2
    if half == 0:
        return 0
    mask = (1 << half) - 1
    while True:
        l, r = i >> half, i & mask
        for at in range(6):
            l, r = r, l ^ (mix((r + k + at * GOLDEN) & WORD) & mask)
        i = l << half | r
        if i < n:
            return i


class Rows:
    def __init__(self, path, batch, seq, seed):
        raw = np.memmap(path, np.uint8, "r")
        head = raw[:1024].view(np.int32)
        assert (head[0], head[1]) == (20240520, 1), "a shard of uint16 tokens is wanted"
        self.tokens = raw[1024:].view(np.uint16)
        self.batch, self.seq, self.seed = batch, seq, seed
        self.rows = (len(self.tokens) - seq) // seq
        self.slack = min(seq - 1, len(self.tokens) - 1 - self.rows * seq)

    def step(self, step):
        out = np.empty((self.batch, self.seq + 1), np.int64)
        for b in range(self.batch):
            epoch, i = divmod(step * self.batch + b, self.rows)
            at = key(self.seed, epoch, 1) % (self.slack + 1) + self.seq * permute(i, self.rows, key(self.seed, epoch, 0))
            out[b] = self.tokens[at : at + self.seq + 1]
        return torch.from_numpy(out)


# ---- the model ----------------------------------------------------------------------------------


def checkpoint(folder):
    """Parameters by their path."""
    raw = open(os.path.join(folder, "weights.safetensors"), "rb").read()
    n = int.from_bytes(raw[:8], "little")
    out = {}
    for name, t in json.loads(raw[8 : 8 + n]).items():
        if name != "__metadata__":
            a, b = t["data_offsets"]
            out[name] = torch.from_numpy(np.frombuffer(raw[8 + n + a : 8 + n + b], np.float32).reshape(t["shape"]).copy())
    return out


class GPT2(torch.nn.Module):
    def __init__(self, weights, heads, eps):
        super().__init__()
        self.names = {n: re.sub(r"[\[\].]", "_", n) for n in weights}
        for n, w in weights.items():
            self.register_parameter(self.names[n], torch.nn.Parameter(w))
        self.layers = 1 + max(int(m[1]) for m in map(lambda n: re.match(r"layer\[(\d+)\]", n), weights) if m)
        self.heads, self.eps = heads, eps
        self.vocab, self.dim = weights["wte.weight"].shape
        # Rows of the product with the table are padded to a multiple of 64; the padding counts nothing.
        self.pad = -self.vocab % 64
        self.register_buffer("hide", torch.cat([torch.zeros(self.vocab), torch.full((self.pad,), -1e30)]))

    def p(self, name):
        return getattr(self, self.names[name])

    def linear(self, x, name):
        return F.linear(x, self.p(name + ".weight"), self.p(name + ".bias"))

    def norm(self, x, name):
        return F.layer_norm(x, (self.dim,), self.p(name + ".weight"), self.p(name + ".bias"), self.eps)

    def forward(self, tokens, targets):
        B, T = tokens.shape
        x = F.embedding(tokens, self.p("wte.weight")) + self.p("wpe.weight")[:T]
        for i in range(self.layers):
            at = f"layer[{i}]."
            h = self.norm(x, at + "ln1")
            q, k, v = (self.linear(h, at + n).view(B, T, self.heads, -1).transpose(1, 2) for n in "qkv")
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.linear(a.transpose(1, 2).reshape(B, T, self.dim), at + "o")
            h = self.norm(x, at + "ln2")
            x = x + self.linear(F.gelu(self.linear(h, at + "up"), approximate=GELU), at + "down")
        x = self.norm(x, "ln")
        logits = F.linear(x, F.pad(self.p("wte.weight"), (0, 0, 0, self.pad))).float() + self.hide
        return F.cross_entropy(logits.view(B * T, -1), targets.reshape(-1))


GELU = "tanh"


def rate(s, k, n):
    """runtime/optim/schedule.go"""
    if k < s["Warmup"]:
        return s["Peak"] * (k + 1) / s["Warmup"]
    part = min(1.0, (k - s["Warmup"]) / (n - s["Warmup"])) if n > s["Warmup"] else 1.0
    if s["Kind"] == "cosine":
        return s["Final"] + (s["Peak"] - s["Final"]) * 0.5 * (1 + math.cos(math.pi * part))
    if s["Kind"] == "linear":
        return s["Peak"] + (s["Final"] - s["Peak"]) * part
    assert s["Kind"] == "constant", s
    return s["Peak"]


# ---- the two runs -------------------------------------------------------------------------------


def run(program, data, out, steps, sets, seconds):
    shutil.rmtree(out, ignore_errors=True)
    args = [program, "--data", data, "--steps", str(steps), "--save-every", "0", "--eval-every", "0", "--out", out]
    for s in ["train.eval=none", *sets]:
        args += ["--set", s]
    began = time.monotonic()
    with open(out + ".log", "w") as log:
        done = subprocess.run(args, stdout=log, stderr=subprocess.STDOUT, timeout=seconds)
    if done.returncode:
        sys.exit(f"{' '.join(args)}: exit {done.returncode}\n{open(out + '.log').read()[-2000:]}")
    rows = [json.loads(line) for line in open(os.path.join(out, "metrics.jsonl"))]
    return [r["loss"] for r in rows if "loss" in r], time.monotonic() - began


def train(model, rows, record, steps, device, micro, compiled):
    t = record["train"]
    o = t["Optimizer"]
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    opt = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": o["Decay"]}, {"params": vectors, "weight_decay": 0.0}],
        lr=1.0, betas=(o["Beta1"], o["Beta2"]), eps=o["Eps"], fused=True)
    if compiled:
        from torch import _dynamo

        _dynamo.config.suppress_errors = True  # what cannot be compiled runs as it is
    loss_of = torch.compile(model) if compiled else model
    losses, parts = [], rows.batch // micro
    for step in range(steps):
        batch = rows.step(step).to(device, non_blocking=True)
        for group in opt.param_groups:
            group["lr"] = rate(t["LR"], step, t["Steps"])
        total = torch.zeros((), device=device)
        for m in batch.chunk(parts):
            with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
                loss = loss_of(m[:, :-1], m[:, 1:]) / parts
            loss.backward()
            total += loss.detach()
        if t["Clip"]:
            torch.nn.utils.clip_grad_norm_(model.parameters(), t["Clip"])
        opt.step()
        opt.zero_grad(set_to_none=True)
        losses.append(total)
    return [float(x) for x in losses]


def main():
    a = argparse.ArgumentParser()
    a.add_argument("program")
    a.add_argument("data")
    a.add_argument("out")
    a.add_argument("--steps", type=int, default=600)
    a.add_argument("--micro", type=int, default=32)
    a.add_argument("--heads", type=int, default=12)
    a.add_argument("--device", default="cuda")
    a.add_argument("--compile", action="store_true")
    a.add_argument("--seconds", type=float, default=240)
    a.add_argument("--set", action="append", default=[])
    a = a.parse_args()
    os.makedirs(a.out, exist_ok=True)
    torch.set_float32_matmul_precision("high" if a.device == "cuda" else "highest")
    run(a.program, a.data, f"{a.out}/start", 1, [*a.set, "train.lr=constant(peak = 1e-30)"], a.seconds)
    weights = checkpoint(f"{a.out}/start/step-000001")
    ours, took = run(a.program, a.data, f"{a.out}/mtc", a.steps, a.set, a.seconds)
    state = json.load(open(f"{a.out}/start/step-000001/state.json"))
    tokens = state["batch"] * state["seq"]
    print(f"mtc      {len(weights)} tensors, {sum(w.numel() for w in weights.values()):,} parameters, {a.steps} steps of {tokens:,} tokens in {took:.0f} s with start-up", flush=True)
    record = json.load(open(f"{a.out}/mtc/run.json"))
    rows = Rows(a.data, state["batch"], state["seq"], record["train"]["Seed"])
    model = GPT2(weights, a.heads, 1e-5).to(a.device)
    began = time.monotonic()
    theirs = train(model, rows, record, a.steps, a.device, min(a.micro, rows.batch), a.compile)
    print(f"PyTorch  the same in {time.monotonic() - began:.0f} s{' with compiling' if a.compile else ''}; {a.steps * rows.batch / rows.rows:.2f} epochs of {len(rows.tokens):,} tokens")
    with open(f"{a.out}/losses.csv", "w") as f:
        f.write("step,mtc,torch\n")
        f.writelines(f"{i + 1},{x:.5f},{y:.5f}\n" for i, (x, y) in enumerate(zip(ours, theirs)))
    tail = max(1, a.steps // 10)
    print("  steps          mtc   PyTorch  difference")
    worst = 0.0
    for at in range(0, a.steps, tail):
        x, y = np.mean(ours[at : at + tail]), np.mean(theirs[at : at + tail])
        worst = max(worst, abs(x / y - 1))
        print(f"  {at + 1:4d} to {min(a.steps, at + tail):4d}  {x:.4f}    {y:.4f}  {100 * (x / y - 1):+.2f} %")
    x, y = np.mean(ours[-tail:]), np.mean(theirs[-tail:])
    far = abs(x / y - 1)
    ok = len(ours) == a.steps and far <= TOLERANCE and ours[-1] < ours[0]
    print(f"final loss {x:.4f} and {y:.4f}, {100 * far:.2f} % apart (0.5 allowed), at most {100 * worst:.2f} % over a tenth; {'ok' if ok else 'FAIL'}")
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
