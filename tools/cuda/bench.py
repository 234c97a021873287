"""Times the programs that tools/cuda/bench.sh built, and prints a table last.

    python3 tools/cuda/bench.py [NAME...]     needs a GPU, NVRTC, cuBLASLt and numpy

Each program trains some steps on random tokens and writes no checkpoint; the time of a step is
the mean of those after the first ones. Device memory is the most that the driver said was in
use, host memory the most that was resident. Logs go to $OUT (default build/cuda/out), and
$BENCH_SECONDS (default 460) bounds the whole: what does not start by then is left out.
"""
import json
import lzma
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

import numpy as np

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
OUT = os.environ.get("OUT") or os.path.join(ROOT, "build", "cuda", "out")
END = time.monotonic() + float(os.environ.get("BENCH_SECONDS", "460"))

# name: vocabulary, parameters that a token passes, steps, first step that counts, limit in seconds, peers'
# tok/s on one H200. Peers keep less: PyTorch's 7B has moments in bf16 and no float32 master.
GPT2, QWEN, MOE = (50257, 124_439_808), (152064, 7_615_616_512), (65536, 185_733_120)
TORCH = {64: {"PyTorch compiled, resident": 13_270}, 16: {"PyTorch compiled, resident": 12_930}, 4: {"PyTorch compiled, resident": 11_370}}
RUNS = {
    "gpt2-524288": (*GPT2, 8, 3, 60, {"PyTorch compiled": 518_000, "llm.c": 441_000}),
    "gpt2-8192": (*GPT2, 60, 11, 40, {"PyTorch compiled, one graph": 422_000, "llm.c": 484_000}),
    "7b-stream-64": (*QWEN, 5, 3, 130, {"MegaTrain": 4_900, **TORCH[64]}),
    "7b-resident-64": (*QWEN, 5, 3, 110, TORCH[64]),
    "moe-d12": (*MOE, 12, 8, 60, {"the paper's code": 166_000}),
    "7b-stream-64-noclip": (*QWEN, 5, 3, 110, {"MegaTrain": 4_900, **TORCH[64]}),
    "7b-stream-64-24": (*QWEN, 5, 3, 130, {"MegaTrain": 4_900, **TORCH[64]}),
    "7b-stream-16": (*QWEN, 6, 3, 100, {"MegaTrain": 2_070, **TORCH[16]}),
    "7b-stream-16-noclip": (*QWEN, 6, 3, 100, {"MegaTrain": 2_070, **TORCH[16]}),
    "7b-stream-158": (*QWEN, 4, 2, 160, {"MegaTrain": 6_880}),
    "7b-resident-16": (*QWEN, 8, 3, 90, TORCH[16]),
    "7b-resident-4": (*QWEN, 12, 3, 90, TORCH[4]),
    "gpt2-65536": (*GPT2, 20, 5, 40, {"PyTorch compiled": 536_000, "llm.c": 470_000}),
    "7b-mixed-64": (*QWEN, 5, 3, 110, TORCH[64]),
}
DATA_TOKENS = 20_000_000


def left():
    return END - time.monotonic()


def shard(work, vocab):
    """A file of random tokens, uint16 where they fit."""
    path = os.path.join(work, f"tokens{vocab}.bin")
    if not os.path.exists(path):
        wide = vocab > 65536
        head = np.zeros(256, np.int32)
        head[:3] = (20240801, 7, DATA_TOKENS) if wide else (20240520, 1, DATA_TOKENS)
        tokens = np.random.default_rng(vocab).integers(0, vocab, DATA_TOKENS, np.uint32)
        with open(path, "wb") as f:
            head.tofile(f)
            tokens.astype(np.uint32 if wide else np.uint16).tofile(f)
    return path


class Watch(threading.Thread):
    """The most device memory in use, in GiB."""

    def __init__(self):
        super().__init__(daemon=True)
        self.done, self.used = threading.Event(), 0.0
        self.start()

    def run(self):
        while not self.done.wait(2.0):
            p = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True)
            try:
                self.used = max(self.used, float(p.stdout.split()[0]) / 1024)
            except (IndexError, ValueError):
                pass


def run(name, binary, work):
    vocab, params, steps, first, limit, peers = RUNS[name]
    folder, log = os.path.join(work, "run-" + name), os.path.join(OUT, name + ".log")
    data = shard(work, vocab)
    watch, start = Watch(), time.monotonic()
    with open(log, "w") as f:
        p = subprocess.Popen([binary, "--data", data, "--steps", str(steps), "--no-save", "--no-memory-check", "--out", folder], stdout=f, stderr=f, cwd=work)
        timer = threading.Timer(min(limit, left()), p.kill)
        timer.start()
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = status
        timer.cancel()
    watch.done.set()
    rows = []
    try:
        for line in open(os.path.join(folder, "metrics.jsonl")):
            try:
                r = json.loads(line)
            except ValueError:
                continue
            if "ms" in r and "eval_loss" not in r:
                rows.append(r)
        os.rename(os.path.join(folder, "metrics.jsonl"), os.path.join(OUT, name + ".jsonl"))
    except OSError:
        pass
    memory = [line.split()[1] for line in open("/proc/meminfo") if line.startswith(("MemTotal", "MemAvailable"))]
    print(f"\n== {name}: host memory {int(memory[0]) >> 20} GiB, {int(memory[1]) >> 20} free; {time.monotonic() - start:.0f} s, status {status}; ms a step: {' '.join(str(round(r['ms'], 1)) for r in rows)}", flush=True)
    text = open(log, errors="replace").read()
    shown = [line for line in text.splitlines() if re.match(r"\s*(memory|placement|step|device)\s", line)] if status == 0 else text.splitlines()[-12:]
    print("\n".join(shown), flush=True)
    counted = [r for r in rows if r["step"] >= first]
    if not counted:
        return f"{name:20s} FAIL: {text.strip().splitlines()[-1][:90] if text.strip() else 'no output'}"
    ms = sum(r["ms"] for r in counted) / len(counted)
    tokens = counted[-1]["tokens"] / counted[-1]["step"]
    rate = tokens / ms * 1e3
    note = "".join(f"; {rate / v:.2f} x {k}" for k, v in peers.items())
    bad = "" if all(r.get("loss") is not None for r in rows) else "  NON-FINITE"
    return (f"{name:20s} {rate:9,.0f} tok/s {ms:9.1f} ms {6 * params * rate / 1e12:6.0f} 6N TFLOP/s {watch.used:6.1f} GiB GPU"
            f" {usage.ru_maxrss / 2**20:6.1f} GiB host  loss {rows[0]['loss']:.3f} .. {rows[-1]['loss']:.3f}{bad}{note}")


def ceilings(binary):
    """Lines of the copy and of the matrix products."""
    try:
        p = subprocess.run([binary, "-only", "linear", "-memory", str(24 << 30)], capture_output=True, text=True, timeout=max(5, min(45, left())))
    except subprocess.TimeoutExpired:
        return ["opbench: too slow"]
    return (p.stdout + p.stderr).splitlines()


def main():
    os.makedirs(OUT, exist_ok=True)
    names = sys.argv[1:] or list(RUNS)
    table = []
    with tempfile.TemporaryDirectory() as work:
        with tarfile.open(fileobj=lzma.open(os.path.join(ROOT, "build", "cuda", "bench.tar.xz"))) as t:
            t.extractall(work)
        os.environ["XDG_CACHE_HOME"] = os.path.join(work, "cache")
        top = ceilings(os.path.join(work, "bench", "opbench"))
        print("\n".join(top), flush=True)
        for name in names:
            if left() < 20:
                table.append(f"{name:20s} left out: no time")
                continue
            table.append(run(name, os.path.join(work, "bench", name), work))
            with open(os.path.join(OUT, "bench.txt"), "w") as f:
                f.write("\n".join(top + table) + "\n")
    print("\n" + "\n".join(top + table))
    return 1 if any(" FAIL" in row for row in table) else 0


if __name__ == "__main__":
    sys.exit(main())
