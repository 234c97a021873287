"""Compares this project with PyTorch on the CPU: same work, same threads, float32.

    python tools/bench/compare.py BENCH [--threads N] [--repeat N] [--only WORD] [--cpu] [--step NAME=PROGRAM]

BENCH is the built tools/bench. Both sides take turns, and each keeps its best time, so a busy
machine slows both alike. On a machine that others use, --threads 1 --cpu compares processor
time, which waiting for a core does not touch. A ratio is PyTorch's time over ours: above 1, ours is faster.
tools/bench/run.sh builds everything and calls this.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

# Idle PyTorch threads must sleep, not spin, while the other side runs.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("KMP_BLOCKTIME", "0")

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import models  # noqa: E402


class Ours:
    def __init__(self, path, threads):
        self.p = subprocess.Popen([path, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.name = self.p.stdout.readline().split()[0]

    def time(self, case):
        self.p.stdin.write(case + "\n")
        self.p.stdin.flush()
        wall, cpu = self.p.stdout.readline().split()
        return float(cpu if CPU else wall)


CPU = False  # measure processor time


def clock(fn):
    now = time.process_time if CPU else time.perf_counter
    t = now()
    fn()
    return now() - t


def best(ours, theirs, repeat):
    """The best time of each, taken in turns; the first turn warms up."""
    a, b = [], []
    for _ in range(repeat + 1):
        a.append(ours())
        b.append(theirs())
    return min(a[1:]), min(b[1:])


def line(name, ours, theirs, unit, amount):
    """amount is in units of 1e9: FLOPs or bytes."""
    print(f"{name:34} {amount / ours:9.1f} {amount / theirs:9.1f} {unit:8} {theirs / ours:6.2f}", flush=True)


def gemm(bench, args):
    shapes = [
        ("nano qkv", 1024, 128, 128), ("nano up", 1024, 512, 128), ("nano down", 1024, 128, 512),
        ("nano rows 2048", 2048, 512, 192), ("gpt2 proj", 1024, 768, 768), ("gpt2 up", 1024, 3072, 768),
        ("gpt2 down", 1024, 768, 3072), ("gpt2 head, 256 rows", 256, 50257, 768),
    ]
    for name, rows, out, inn in shapes:
        x, w, dy = torch.randn(rows, inn), torch.randn(out, inn), torch.randn(rows, out)
        for form, (m, n, k), fn in (
            ("NT", (rows, out, inn), lambda: F.linear(x, w)),
            ("NN", (rows, inn, out), lambda: dy @ w),
            ("TN", (out, inn, rows), lambda: dy.t() @ x),
        ):
            a, b = best(lambda: bench.time(f"gemm {form} {m} {n} {k}"), lambda: clock(fn), args.repeat)
            line(f"{form} {name} {m}x{n}x{k}", a, b, "GFLOP/s", 2e-9 * m * n * k)


def attention(bench, args):
    for name, b, t, h, d in (("nano", 4, 256, 4, 32), ("gpt2", 4, 256, 12, 64), ("gpt2 long", 1, 1024, 12, 64)):
        q, k, v = (torch.randn(b, t, h, d).transpose(1, 2).requires_grad_() for _ in range(3))
        dy = torch.randn(b, h, t, d)
        work = 4e-9 * b * h * d * t * (t + 1) / 2

        def forward():
            with torch.no_grad():
                F.scaled_dot_product_attention(q, k, v, is_causal=True)

        def backward():
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return clock(lambda: torch.autograd.grad(y, (q, k, v), dy))

        shape = f"{b}x{t}x{h}x{d}"
        x, y = best(lambda: bench.time(f"attention fwd {b} {t} {h} {d}"), lambda: clock(forward), args.repeat)
        line(f"attention forward {name} {shape}", x, y, "GFLOP/s", work)
        x, y = best(lambda: bench.time(f"attention bwd {b} {t} {h} {d}"), backward, args.repeat)
        line(f"attention backward {name} {shape}", x, y, "GFLOP/s", 2.5 * work)


def adamw(bench, args):
    n = 1 << 24
    p = torch.nn.Parameter(torch.randn(n))
    p.grad = torch.randn(n)
    opt = torch.optim.AdamW([p], lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    ours, theirs = best(lambda: bench.time(f"adamw {n}"), lambda: clock(opt.step), args.repeat)
    line("adamw, 16.8 M parameters", ours, theirs, "GB/s", 28e-9 * n)
    # Our own copy and PyTorch's: the machine's bandwidth is the better of the two.
    src, dst = torch.randn(4 * n), torch.randn(4 * n)
    a, b = best(lambda: bench.time(f"copy {4 * n}"), lambda: clock(lambda: dst.copy_(src)), args.repeat)
    line("copy, 268 MB", a, b, "GB/s", 32e-9 * n)
    print(f"{'adamw / copy bandwidth':34} {28 * n / ours / (32 * n / min(a, b)):9.2f}")


def step(name, program, args):
    """One training step of a compiled model against the same model in PyTorch."""
    model, vocab, rows, seq, betas = models.BUILD[name]()
    groups = [
        {"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
    ]
    opt = torch.optim.AdamW(groups, lr=1e-4, betas=betas, fused=True)
    tokens = torch.randint(0, min(vocab, 256), (rows, seq + 1))

    def train():
        logits = model(tokens[:, :-1])
        F.cross_entropy(logits.view(-1, vocab), tokens[:, 1:].reshape(-1)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)

    n = sum(p.numel() for p in model.parameters())
    params = json.loads((pathlib.Path(program).parent / "schedule.json").read_text())["params"]
    if params != n:
        sys.exit(f"{name}: the .mt has {params} parameters and tools/bench/models.py {n}: they are not the same model")
    steps, warm = (20, 2) if n < 1e7 else (2, 1)  # of one turn

    with tempfile.TemporaryDirectory() as tmp:
        data = pathlib.Path(tmp) / "data.txt"
        errors = pathlib.Path(tmp) / "stderr.txt"
        data.write_bytes(bytes(torch.randint(32, 127, (1 << 20,)).tolist()))

        def ours():
            """A step or two to warm up, then the mean processor time or the best time of a step."""
            out = pathlib.Path(tmp) / f"run{time.monotonic_ns()}"
            p = subprocess.Popen(
                [program, "--data", data, "--eval-data", data, "--steps", "1000", "--out", out, "--threads",
                 str(args.threads), "--eval-every", "0", "--save-every", "0"],
                stdout=subprocess.DEVNULL, stderr=errors.open("w"))
            try:
                wait_for(p, out, warm)
                before = processor(p)
                times = wait_for(p, out, warm + steps)
                return (processor(p) - before) / (len(times) - warm) if CPU else min(times[warm:]) / 1e3
            finally:
                p.kill()  # before it saves
                p.wait()

        def wait_for(p, out, count):
            while True:
                if p.poll() is not None:
                    sys.exit(f"{program} ended with code {p.returncode}:\n{errors.read_text()}")
                if (out / "metrics.jsonl").exists():
                    lines = (out / "metrics.jsonl").read_text().split("\n")[:-1]
                    if len(lines) >= count:
                        return [json.loads(x)["ms"] for x in lines if '"ms"' in x]
                time.sleep(0.005)

        def processor(p):
            fields = pathlib.Path(f"/proc/{p.pid}/stat").read_text().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        a, b = best(ours, lambda: min(clock(train) for _ in range(steps)), max(1, args.repeat // 4))
    print(f"{name} step, {rows}x{seq}, {n / 1e6:.1f} M parameters".ljust(34),
          f"{a * 1e3:9.1f} {b * 1e3:9.1f} {'ms':8} {b / a:6.2f}", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("bench")
    ap.add_argument("--threads", type=int, default=os.cpu_count())
    ap.add_argument("--repeat", type=int, default=12)
    ap.add_argument("--only", default="", help="gemm, attention, adamw or step")
    ap.add_argument("--step", action="append", default=[], help="NAME=PROGRAM")
    ap.add_argument("--cpu", action="store_true", help="compare processor time")
    args = ap.parse_args()
    global CPU
    CPU = args.cpu
    torch.set_num_threads(args.threads)
    bench = Ours(args.bench, args.threads)
    print(f"PyTorch {torch.__version__}, {args.threads} threads, ours: {bench.name}; best of {args.repeat}, in turns"
          + (", processor time" if CPU else ""))
    print(f"{'':34} {'ours':>9} {'PyTorch':>9} {'':8} {'ratio':>6}")
    for name, fn in (("gemm", gemm), ("attention", attention), ("adamw", adamw)):
        if args.only in ("", name):
            fn(bench, args)
    bench.p.stdin.close()
    bench.p.wait()
    if args.only in ("", "step"):
        for s in args.step:
            step(*s.split("=", 1), args)


if __name__ == "__main__":
    main()
