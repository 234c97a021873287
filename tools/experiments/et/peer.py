"""Trains the experiment's model twice, by a program of mtc and by PyTorch, and compares the curves:
the loss of every step, and how many experts a token had.

  peer.py PROGRAM DATA.bin OUT --router 'threshold(0.125, ema = 0.98, warmup = causal(60))' [--steps N] [--curve FILE]

PROGRAM is et.mt at any size, compiled for a CPU with that router. It trains for a step with a rate that
changes nothing, whose checkpoint gives PyTorch its weights, and then in earnest. PyTorch's router is
written from the definitions: sorting, exact order statistics where mtc reads a histogram. Both see the
same rows in the same order. Allowed are 1 % of the loss over a tenth of the run, a choice of experts
being no smooth thing. With --device cuda the program is one for CUDA, and PyTorch's products are in
bfloat16 by autocast, the router's in float32.
"""
import argparse
import json
import math
import os
import re
import statistics
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "cuda"))
from train_peers import Rows, checkpoint, run  # noqa: E402

TOLERANCE = 1e-2


def parse(text):
    """A router as the language has it, as a dictionary: its name, `0`, `1`.. and what has a name."""
    name, _, rest = text.strip().partition("(")
    out, depth, part, parts = {"name": name}, 0, "", []
    for c in rest[:-1] + ",":
        if c == "," and depth == 0:
            parts.append(part.strip())
            part = ""
            continue
        depth += (c == "(") - (c == ")")
        part += c
    for i, p in enumerate(p for p in parts if p):
        m = re.match(r"(\w+)\s*=\s*(.*)$", p)
        out[m[1] if m else str(i)] = m[2] if m else p
    return out


class Router:
    """One layer's router: which experts a token has, its gates, and what a step does to its state."""

    def __init__(self, text, experts):
        r = parse(text)
        self.kind, self.E = r["name"], experts
        self.alpha = self.u = 0.0
        self.quantile = False
        self.bias = torch.zeros(experts)
        if self.kind == "topk":
            assert r["0"] == "1" and r["scores"] == "sigmoid"
            b = parse(r.get("balance", "none"))
            self.alpha = float(b["0"]) if b["name"] == "aux" else 0.0
            self.u = float(b["0"]) if b["name"] == "lossfree" else 0.0
            self.quantile = b["name"] == "quantile"
            return
        self.rate, self.ema = eval(r["0"], {}), float(r["ema"])
        mean = self.rate * experts
        self.most = max(math.ceil(1.5 * mean), math.ceil(mean) + 1)
        self.pool = r.get("pool")
        w = parse(r.get("warmup", "none"))
        self.causal = int(w["0"]) if w["name"] == "causal" else 0
        self.choice = int(w["0"]) if w["name"] == "expert_choice" else 0
        self.average, self.weight, self.updates = torch.zeros(experts, dtype=torch.float64), 0.0, 0
        self.cut = torch.full((experts,), statistics.NormalDist().inv_cdf(1 - self.rate))

    def take(self, logits, seqs):
        """Pairs [N, E], gates, and the loss of balance; logits [N, E] of one step."""
        score = torch.sigmoid(logits)
        for name in ("bias", "average", "cut"):
            if hasattr(self, name):
                setattr(self, name, getattr(self, name).to(logits.device))
        with torch.no_grad():
            N = len(logits)
            if self.kind == "topk":
                mask = F.one_hot((score + self.bias).argmax(-1), self.E).bool()
                if self.quantile:
                    nxt = (score + self.bias).topk(2, -1).values[:, 1:]
                    self.now = torch.stack([c.sort(descending=True).values[int(N / self.E) - 1] for c in (score - nxt).T])
                self.count = mask.sum(0)
            else:
                k = int(self.rate * N)
                self.now = logits.T.sort(descending=True).values[:, k - 1].clone()
                if self.pool == "sequence":
                    per = logits.view(seqs, -1, self.E)
                    mask = per >= per.sort(1, descending=True).values[:, int(self.rate * per.shape[1]) - 1][:, None]
                    mask = mask.view(N, self.E)
                elif self.pool == "step" or self.updates < self.choice:
                    mask = logits >= self.now
                else:
                    mask = logits > self.cut
                    if mask.sum() > self.most * N:  # rows of a micro-batch: the pairs of the lowest logits go
                        least = logits[mask].sort(descending=True).values[self.most * N - 1]
                        mask &= logits >= least
        aux = 0.0
        if self.alpha:
            f = self.E / N * self.count
            aux = self.alpha * (f * (score / score.sum(-1, keepdim=True)).mean(0)).sum()
        self.fan = mask.sum() / N
        return mask, score, aux

    def advance(self):
        if self.u:
            self.bias += self.u * torch.sign(self.count.float().mean() - self.count)
        elif self.quantile:
            self.bias = -self.now + self.now.mean()
        elif self.kind != "topk":
            beta = min(self.ema, 1 - 1 / (1 + 0.05 * self.updates)) if self.updates < self.causal else self.ema
            self.average = beta * self.average + (1 - beta) * self.now.double()
            self.weight = beta * self.weight + 1 - beta
            self.cut = (self.average / self.weight).float()
            self.updates += 1


class Model(torch.nn.Module):
    def __init__(self, weights, hd, router):
        super().__init__()
        self.names = {n: re.sub(r"[\[\].]", "_", n) for n in weights}
        for n, w in weights.items():
            self.register_parameter(self.names[n], torch.nn.Parameter(w))
        at = [re.match(r"layer\[(\d+)\](\.moe\.expert\[(\d+)\])?", n) for n in weights]
        self.layers = 1 + max(int(m[1]) for m in at if m)
        self.E = 1 + max((int(m[3]) for m in at if m and m[3]), default=-1)
        self.hd, self.D = hd, weights["wte.weight"].shape[1]
        self.routers = {i: Router(router, self.E) for i in range(self.layers) if f"layer[{i}].moe.router.weight" in weights}

    def p(self, name):
        return getattr(self, self.names[name])

    def linear(self, x, name):
        return F.linear(x, self.p(name + ".weight"))

    def norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)

    def rope(self, x):
        half = self.hd // 2
        w = torch.arange(x.shape[-2], device=x.device)[:, None] * 10000.0 ** (-torch.arange(half, device=x.device) / half)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * w.cos() - b * w.sin(), b * w.cos() + a * w.sin()], -1)

    def mlp(self, x, at):
        return self.linear(F.relu(self.linear(x, at + "up")).square(), at + "down")

    def forward(self, tokens, targets):
        B, T = tokens.shape
        x, aux = self.norm(F.embedding(tokens, self.p("wte.weight"))), 0.0
        for i in range(self.layers):
            at = f"layer[{i}]."
            h = self.norm(x)
            q, k, v = (self.linear(h, at + "attn." + n).view(B, T, -1, self.hd).transpose(1, 2) for n in "qkv")
            a = F.scaled_dot_product_attention(self.norm(self.rope(q)), self.norm(self.rope(k)), v, is_causal=True)
            x = x + self.linear(a.transpose(1, 2).reshape(B, T, self.D), at + "attn.o")
            h = self.norm(x)
            if i not in self.routers:
                x = x + self.mlp(h, at + "mlp.")
                continue
            h = h.reshape(B * T, self.D)
            with torch.autocast(h.device.type, enabled=False):
                mask, gate, more = self.routers[i].take(self.linear(h.float(), at + "moe.router"), B)
            y, aux = self.mlp(h, at + "moe.shared."), aux + more
            for e in range(self.E):
                t = mask[:, e].nonzero()[:, 0]
                y = y.index_add(0, t, (gate[t, e, None] * self.mlp(h[t], f"{at}moe.expert[{e}].")).to(y.dtype))
            x = x + y.view(B, T, self.D)
        logits = 15 * torch.tanh(self.linear(self.norm(x), "head").float() / 15)
        return F.cross_entropy(logits.view(B * T, -1), targets.reshape(-1)), aux


def rate(s, k, n):
    if k < s["Warmup"]:
        return s["Peak"] * (k + 1) / s["Warmup"]
    left = n - k
    return s["Peak"] if left >= s["Decay"] else s["Final"] + (s["Peak"] - s["Final"]) * left / s["Decay"]


def train(model, rows, t, steps, device="cpu", seconds=1e9):
    """Losses and experts a token of each step; fewer when the seconds are over."""
    o = t["Optimizer"]
    opt = torch.optim.AdamW(model.parameters(), lr=1.0, betas=(o["Beta1"], o["Beta2"]), eps=o["Eps"], weight_decay=o["Decay"])
    losses, fans, began = [], [], time.monotonic()
    for step in range(steps):
        if time.monotonic() - began > seconds:
            break
        batch = rows.step(step).to(device)
        opt.param_groups[0]["lr"] = rate(t["LR"], step, steps)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            loss, aux = model(batch[:, :-1], batch[:, 1:])
        (loss + aux).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), t["Clip"])
        opt.step()
        opt.zero_grad()
        for r in model.routers.values():
            r.advance()
        losses.append(loss.item())
        fans.append(statistics.mean(float(r.fan) for r in model.routers.values()) if model.routers else 0)
    return losses, fans


def main():
    a = argparse.ArgumentParser()
    a.add_argument("program")
    a.add_argument("data")
    a.add_argument("out")
    a.add_argument("--router", default="none")
    a.add_argument("--hd", type=int, default=16)
    a.add_argument("--steps", type=int, default=300)
    a.add_argument("--seconds", type=float, default=600)
    a.add_argument("--set", action="append", default=[])
    a.add_argument("--device", default="cpu")
    a.add_argument("--torch-seconds", type=float, default=1e9)
    a = a.parse_args()
    torch.set_num_threads(1)  # results that do not depend on the machine; the products are small
    os.makedirs(a.out, exist_ok=True)
    run(a.program, a.data, f"{a.out}/start", 1, [*a.set, "train.lr=constant(peak = 1e-30)"], a.seconds)
    first = next(d for d in (f"{a.out}/start/step-000001", f"{a.out}/start") if os.path.exists(d + "/weights.safetensors"))
    weights, state = checkpoint(first), json.load(open(first + "/state.json"))
    ours, took = run(a.program, a.data, f"{a.out}/mtc", a.steps, a.set, a.seconds)
    record = json.load(open(f"{a.out}/mtc/run.json"))
    rows = Rows(a.data, state["batch"], state["seq"], record["train"]["Seed"])
    began = time.monotonic()
    theirs, fans = train(Model(weights, a.hd, a.router).to(a.device), rows, record["train"], a.steps, a.device, a.torch_seconds)
    print(f"{a.router}: {len(ours)} steps of mtc in {took:.0f} s with start-up, {len(theirs)} of PyTorch in {time.monotonic() - began:.0f} s", flush=True)
    whole = len(ours) == a.steps and len(theirs) > 10
    a.steps = len(theirs)
    ours = ours[: a.steps]
    with open(f"{a.out}/losses.csv", "w") as f:
        f.write("step,mtc,torch,experts a token\n")
        f.writelines(f"{i + 1},{x:.5f},{y:.5f},{z:.4f}\n" for i, (x, y, z) in enumerate(zip(ours, theirs, fans)))
    fan = {}
    if os.path.exists(f"{a.out}/mtc/moe.jsonl"):
        for l in map(json.loads, open(f"{a.out}/mtc/moe.jsonl")):
            fan[l["step"]] = statistics.mean(x["mean"] for x in l["layers"])
    print("  steps          mtc   PyTorch  difference   experts a token")
    tail, worst, before = max(1, a.steps // 10), 0.0, 0
    for at in range(0, a.steps, tail):
        x, y = statistics.mean(ours[at : at + tail]), statistics.mean(theirs[at : at + tail])
        worst = max(worst, abs(x / y - 1))
        f = [fan[s] for s in fan if at < s <= at + tail]
        print(f"  {at + 1:4d} to {min(a.steps, at + tail):4d}  {x:.4f}    {y:.4f}  {100 * (x / y - 1):+.2f} %      {statistics.mean(f) if f else math.nan:.3f}  {statistics.mean(fans[at : at + tail]):.3f}")
    first = next((i for i, (x, y) in enumerate(zip(ours, theirs)) if abs(x / y - 1) > 1e-4), a.steps)
    ok = whole and worst <= TOLERANCE
    print(f"{a.router}: equal to 0.01 % for {first} steps, at most {100 * worst:.2f} % apart over a tenth ({100 * TOLERANCE:.0f} allowed); {'ok' if ok else 'FAIL'}")
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
