#!/usr/bin/env python3
"""How near predictions come: programs are built, run with --profile, and compared with what was predicted.

    accuracy.py build [--target cpu|cuda] [NAME...]   build them, packed in build/accuracy/TARGET.tar.xz
    accuracy.py run   [--target cpu|cuda] [NAME...]   run them from the pack and print a table last
    accuracy.py list  [--target cpu|cuda]             what there is

On a CPU that others use, --processor-time (as it is where the load says so) measures one core by the time
that the process had of it: `mtc bench`'s program with GOMAXPROCS=1, and of each program two runs of different
length, whose difference is that of their steps.

Building needs Go, for cuda also `make cuda-sdk`, but no GPU; running needs Python alone: mtc itself is in the
pack. A cuda program is predicted for the profile of h200 that ships with mtc, or --machine NAME|FILE; one for
the CPU for what `mtc bench` measures here after the first of the --rounds, so that what the clock does in
between is in both. Of the rounds the one with the median step counts. --seconds bounds the whole: what does
not start by then is left out. Profiles and logs go to $OUT (build/accuracy/out).

The table has the step and the memory, predicted and measured, and the three kinds of task that are farthest
off. The exit code is 1 where a step is more than 10 % off or a memory more than 2 %, on a GPU also more than
64 MiB, which is what its libraries take more or less.
"""
import argparse
import array
import glob
import json
import lzma
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import threading
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.join(ROOT, "build", "accuracy")
OUT = os.path.abspath(os.environ.get("OUT") or os.path.join(BUILD, "out"))


def batch(tokens, seq=1024):
    return ["--set", f"train.seq={seq}", "--set", f"train.batch={tokens} tokens"]


def dims(**sizes):
    return [x for k, v in sizes.items() for x in ("--set", f"{k}={v}")]


H200 = ["--machine", "h200"]
SEVEN = [*H200, *batch(65536)]
FIRST14 = ",".join(["embed", "head"] + [f"layer[{i}]" for i in range(14)])
VOCAB = {"gpt2": 50257, "et_moe": 65536, "qwen2.5-7b": 152064, "qwen2.5-14b": 152064, "llama3.2-1b": 128256, "nano": 256, "et_moe_nano": 256}
# name: model, flags of mtc compile, steps, steps timed, seconds it may take. In the order in which they run.
CASES = {
    "cuda": {
        "gpt2": ("gpt2", [*H200, *batch(524288)], 9, 4, 50),
        "et_moe": ("et_moe", [*H200, *batch(524288, 2048)], 8, 3, 50),
        # These save a checkpoint, for which the largest part of the state passes through the host's memory.
        "gpt2-save": ("gpt2", [*H200, *batch(65536)], 9, 4, 50),
        "1b-save": ("llama3.2-1b", [*H200, *batch(65536)], 5, 2, 90),
        "7b": ("qwen2.5-7b", [*SEVEN, "--placement", "resident"], 5, 2, 90),
        "7b-40": ("qwen2.5-7b", [*SEVEN, "--device-memory", "40GiB"], 4, 2, 90),
        # The host has 128 GiB; what the system and other processes take is left to them.
        "14b": ("qwen2.5-14b", [*H200, *batch(65536), "--device-memory", "138GiB", "--host-memory", "120GiB", "--set", "train.clip=1.0"], 4, 2, 150),
        "7b-24": ("qwen2.5-7b", [*SEVEN, "--device-memory", "24GiB"], 4, 2, 90),
        # The last three layers keep what backward reads; of three among the others it waits on the host.
        "7b-80": ("qwen2.5-7b", [*SEVEN, "--device-memory", "80GiB"], 4, 2, 90),
        "7b-values": ("qwen2.5-7b", [*SEVEN, "--device-memory", "80GiB", "--host-memory", "120GiB", "--save-values", "3",
                      "--recompute", ",".join(f"layer[{i}]" for i in range(27) if i not in (6, 13, 20))], 4, 2, 90),
        # Weights cross for each of eight groups, whose gradients the host adds up.
        "7b-batch": ("qwen2.5-7b", [*H200, *batch(65536, 4096), "--device-memory", "40GiB", "--micro-batch", "2", "--order", "batch"], 4, 2, 90),
        "14b-pinned": ("qwen2.5-14b", ["--target", "cuda", *batch(65536), "--device-memory", "138GiB", "--placement", "stream", "--recompute", "all", "--micro-batch", "8",
                       "--host-slots", "2", "--grad-home", "device", "--input-every", "2", "--resident", FIRST14, "--set", "train.clip=1.0"], 4, 2, 150),
    },
    "cpu": {
        "nano": ("nano", batch(2048, 128), 30, 5, 90),
        "nano-stream": ("nano", [*batch(2048, 128), "--placement", "stream"], 30, 5, 90),
        "et_moe_nano": ("et_moe_nano", batch(2048, 256), 14, 5, 90),
        "gpt2": ("gpt2", batch(256, 256), 5, 2, 180),
        # Shapes that mtc bench measures none of, and adapters.
        "llama": ("nano", [*batch(1024, 256), *dims(D=384, L=6, H=6, KV=2, F=1024, V=8192)], 10, 4, 90),
        "lora": ("nano", [*batch(1024, 256), *dims(D=384, L=6, H=6, KV=2, F=1024, V=8192), "--set", "train.lora=lora(rank = 16, alpha = 32, targets = all)"], 10, 4, 90),
        "gpt2-stream": ("gpt2", [*batch(256, 256), "--placement", "stream", "--recompute", "all", "--device-memory", "1GiB"], 5, 2, 180),
    },
}


def model(name, target):
    """The text of a model with a constant learning rate, no evaluation and no checkpoints."""
    text = open(os.path.join(ROOT, "models", name + ".mt")).read()
    text = re.sub(r"(?m)^  (eval|save|tokenizer) .*\n", "", text)
    text = re.sub(r"(?m)^  lr  .*$", "  lr        = constant(peak = 1e-5)", text)
    if target == "cuda":
        # Thresholds that warm up causally: the published warm-up needs the logits of a whole step at once.
        text = re.sub(r"warmup = expert_choice\([^)]*\)", "warmup = causal(steps = 100)", text)
    return text


def build(target, names):
    folder = os.path.join(BUILD, target)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    env = dict(os.environ)
    if target == "cuda":
        for line in open(os.path.join(ROOT, ".sdk", "cuda.env")):
            key, _, value = line.rstrip("\n").partition("=")
            env[key] = os.path.expandvars(value)
    mtc = os.path.join(folder, "mtc")
    subprocess.run(["go", "build", "-ldflags", "-s -w", "-o", mtc, "./cmd/mtc"], cwd=ROOT, check=True, env={**env, "CGO_ENABLED": "0"})
    if target == "cpu":
        subprocess.run([mtc, "bench", "--target", "cpu", "--mtc-source", ROOT, "--program", os.path.join(folder, "bench")], check=True)
    for name in names:
        base, flags, *_ = CASES[target][name]
        dest = os.path.join(folder, name)
        os.makedirs(dest)
        path = os.path.join(dest, base + ".mt")
        with open(path, "w") as f:
            f.write(model(base, target))
        if base.startswith(("qwen", "llama3")):
            shutil.copy(os.path.join(ROOT, "models", "llama.mt"), dest)
        p = subprocess.run([mtc, "compile", path, "--mtc-source", ROOT, "-o", dest, *flags], env=env, capture_output=True, text=True)
        if p.returncode:
            sys.exit(f"{name}: {p.stderr}")
        print(name + "".join("\n" + x for x in p.stdout.splitlines() if re.match(r"  (placement|step|memory)", x)), flush=True)
        program = next(x for x in glob.glob(dest + "/*") if os.path.isfile(x) and os.access(x, os.X_OK))
        for x in glob.glob(dest + "/*"):
            if x != program and os.path.basename(x) not in ("schedule.json", os.path.basename(path)):
                os.remove(x)
        os.rename(program, os.path.join(dest, "program"))
        subprocess.run(["strip", os.path.join(dest, "program")], check=False, stderr=subprocess.DEVNULL)
    pack = folder + ".tar.xz"
    # Programs share most of their bytes, far apart: one stream with a large dictionary keeps them once.
    with lzma.open(pack, "w", filters=[{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": 96 << 20}]) as z, tarfile.open(fileobj=z, mode="w|") as t:
        t.add(folder, arcname=target)
    print(f"{os.path.getsize(pack) / 1e6:.1f} MB in {os.path.relpath(pack, os.getcwd())}")


def shard(work, vocab, tokens):
    """A file of random tokens."""
    path = os.path.join(work, f"tokens{vocab}.bin")
    wide = vocab > 65536
    if os.path.exists(path):
        return path
    head = array.array("i", [0] * 256)
    head[:3] = array.array("i", (20240801, 7, tokens) if wide else (20240520, 1, tokens))
    body = array.array("I" if wide else "H", random.Random(vocab).choices(range(vocab), k=1 << 20))
    with open(path, "wb") as f:
        head.tofile(f)
        for at in range(0, tokens, len(body)):
            body[: tokens - at].tofile(f)
    return path


class Watch(threading.Thread):
    """The most device memory in use, in bytes."""

    def __init__(self):
        super().__init__(daemon=True)
        self.done, self.used = threading.Event(), 0
        self.start()

    def run(self):
        while not self.done.wait(1.0):
            try:
                p = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True)
                self.used = max(self.used, int(p.stdout.split()[0]) << 20)
            except (OSError, IndexError, ValueError):
                return


def once(target, name, work, k, limit, timed=True, few=0):
    """Runs a program for the k-th time; what was measured, or what went wrong. Without timing: its step
    times. With few it runs so many steps, on one thread."""
    base, compiled, steps, count, _ = CASES[target][name]
    folder = os.path.join(work, target, name)
    out = os.path.join(work, f"run{k}-{name}{'' if timed else '-untimed'}")
    shutil.rmtree(out, ignore_errors=True)
    schedule = json.load(open(os.path.join(folder, "schedule.json")))
    vocab, tokens = next((int(x[2:]) for x in compiled if x.startswith("V=")), VOCAB[base]), schedule["batch"] * schedule["seq"]
    data = shard(work, vocab, max(4 << 20, (steps + 2) * tokens))
    given = ["--from", based(work)] if name == "lora" else []
    saves = [] if name.endswith("-save") else ["--no-save"]
    log = os.path.join(OUT, name + (".log" if timed else ".untimed.log"))
    flags = [f"--profile={count}"] if timed else []
    if few:
        steps = few
        flags += ["--threads", "1"]
    if timed:  # kernels compiled by the program before would leave memory out that the first start takes
        shutil.rmtree(os.environ["XDG_CACHE_HOME"], ignore_errors=True)
    start, watch = time.monotonic(), Watch()
    with open(log, "w") as f:
        p = subprocess.Popen([os.path.join(folder, "program"), "--data", data, "--steps", str(steps), "--no-memory-check", "--out", out, *saves, *given, *flags],
                             stdout=f, stderr=f, cwd=folder)
        timer = threading.Timer(limit, p.kill)
        timer.start()
        _, status, usage = os.wait4(p.pid, 0)
        timer.cancel()
        p.returncode = os.waitstatus_to_exitcode(status)
    watch.done.set()
    took = time.monotonic() - start
    rows = []
    try:
        rows = [r for r in map(json.loads, open(os.path.join(out, "metrics.jsonl"))) if "ms" in r and "eval_loss" not in r]
    except (OSError, ValueError):
        pass
    shown = " ".join(f"{r['ms']:.1f}" for r in rows)
    print(f"== {name}{'' if timed else ' untimed'}: {took:.0f} s, status {p.returncode}; ms a step: {shown}", flush=True)
    if p.returncode:
        tail = open(log, errors="replace").read().strip().splitlines()[-6:]
        print("\n".join(tail), flush=True)
        return {"error": (tail or ["no output"])[-1][:100]}
    if not timed:
        return {"steps": [r["ms"] / 1e3 for r in rows[2:]], "processor": usage.ru_utime}
    for file in ("profile.json", "metrics.jsonl"):
        shutil.copy(os.path.join(out, file), os.path.join(OUT, f"{name}.{file}"))
    return {"run": out, "processor": usage.ru_utime, "tokens": tokens, "slack": 64 << 20 if target == "cuda" else 0, "watched": watch.used, "wall": [x["ms"] / 1e3 for x in rows[2:]]}


def based(work):
    """Weights for adapters to learn on: those that the program of llama begins with."""
    hf = os.path.join(work, "base-hf")
    if not os.path.exists(hf):
        folder, out = os.path.join(work, "cpu", "llama"), os.path.join(work, "base")
        shard(work, 8192, 4 << 20)
        quiet = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder}
        subprocess.run([os.path.join(folder, "program"), "--data", os.path.join(work, "tokens8192.bin"), "--steps", "1", "--out", out], **quiet)
        subprocess.run([os.path.join(work, "cpu", "mtc"), "export", out, "--hf", hf], **quiet)
    return hf


def compared(name, r, work, mtc, target, machine):
    """A run beside its prediction for a machine."""
    if "error" in r:
        return r
    c = subprocess.run([mtc, "compare", os.path.join(work, target, name), r["run"], "--json", "--machine", machine], capture_output=True, text=True)
    if c.returncode:
        return {"error": c.stderr.strip().splitlines()[0][:100]}
    return {**json.loads(c.stdout), **r}


def percent(p):
    return f"{100 * (p['predicted'] / p['measured'] - 1):+6.1f} %"


def row(name, r):
    """A case's lines, and whether it is as near as it has to be."""
    if "error" in r:
        return [f"{name:<12} FAIL {r['error']}"], False
    s = r["step"]
    good = abs(s["predicted"] / s["measured"] - 1) <= 0.1
    line = f"{name:<12} {s['predicted'] * 1e3:9.1f} ms {s['measured'] * 1e3:9.1f} ms {percent(s)}  {r['tokens'] / s['measured']:9,.0f} tok/s"
    for u in r["memory"]:
        b = u["bytes"]
        line += f"  {u['memory']} {b['predicted'] / 2**30:.2f} / {b['measured'] / 2**30:.2f} GiB {percent(b)}"
        good = good and abs(b["predicted"] - b["measured"]) <= max(0.02 * b["measured"], r["slack"])
    out = [line]
    for w in r["worst"]:
        t = w["time"]
        out.append(f"{'':14}{w['kind']:<12} on {w['lane']:<8} {t['predicted'] * 1e3:9.1f} {t['measured'] * 1e3:9.1f} ms  {100 * (t['predicted'] - t['measured']) / s['measured']:+5.1f} % of the step")
    return out, good


def overhead(a, b):
    """What timing costs, from the fastest half of the steps with and without."""
    low = lambda x: statistics.mean(sorted(x)[: max(1, len(x) // 2)])
    return f"timing costs {100 * (low(a) / low(b) - 1):+.2f} % of a step: {low(a) * 1e3:.2f} ms with it, {low(b) * 1e3:.2f} without"


def run(target, names, o):
    end = time.monotonic() + o.seconds
    os.makedirs(OUT, exist_ok=True)
    work = os.path.join(BUILD, "work-" + target)
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    with tarfile.open(fileobj=lzma.open(os.path.join(BUILD, target + ".tar.xz"))) as t:
        t.extractall(work)
    os.environ["XDG_CACHE_HOME"] = os.path.join(work, "cache")
    os.environ["XDG_CONFIG_HOME"] = os.path.join(work, "config")  # the profile that `mtc bench` keeps is none of the user's
    mtc, machine = os.path.join(work, target, "mtc"), o.machine
    if not machine and target == "cuda":
        machine = "h200"
    if o.processor_time:
        machine = machine or bench(work, mtc, True)
        return finish(names, by_processor(target, names, work, mtc, machine, end, o.rounds), [])
    tries, with_timing, without = {}, [], []
    for k in range(o.rounds):
        if k == 1 and not machine:
            machine = bench(work, mtc, False)  # between the runs, whose clock drifts
        for name in names:
            limit = min(CASES[target][name][4], end - time.monotonic())
            if limit < 20 or any("error" in r for r in tries.get(name, [])):
                continue
            r = once(target, name, work, k, limit)
            tries.setdefault(name, []).append(r)
            if name == "gpt2" and "error" not in r:
                with_timing += r["wall"]
                if k == 0 and end - time.monotonic() > 40:
                    without += once(target, name, work, k, 40, timed=False).get("steps", [])
    machine = machine or bench(work, mtc, False)
    best = {name: middle([compared(name, r, work, mtc, target, machine) for r in rs]) for name, rs in tries.items()}
    notes = ["gpt2: " + overhead(with_timing, without)] if with_timing and without else []
    return finish(names, best, notes)


def middle(rs):
    """Of comparisons of one program the one with the median step (of two, the faster), or what went wrong."""
    bad = [r for r in rs if "error" in r]
    return bad[0] if bad else sorted(rs, key=lambda r: r["step"]["measured"])[(len(rs) - 1) // 2]


def bench(work, mtc, processor):
    """A profile of this machine by the program of `mtc bench`; by processor time it is that of one core."""
    machine, result = os.path.join(OUT, "machine.json"), os.path.join(OUT, "bench.json")
    program, start = os.path.join(work, "cpu", "bench"), time.monotonic()
    flags, env = ["-disk", OUT], dict(os.environ)
    if processor:
        flags.append("-processor-time")
        env["GOMAXPROCS"] = "1"
    with open(result, "w") as f:
        subprocess.run([program, *flags], check=True, stdout=f, env=env)
    subprocess.run([mtc, "bench", "--result", result, "-o", machine], check=True, cwd=ROOT)
    print(f"mtc bench: {time.monotonic() - start:.0f} s", flush=True)
    return machine


def by_processor(target, names, work, mtc, machine, end, rounds):
    """The comparisons with the step by processor time: of runs of two lengths in turn, the least of each. Time
    in the kernel is left out: it is that of memory taken at the start, which a virtual machine may give slowly."""
    best, least = {}, {}
    for _ in range(rounds):
        for name in names:
            steps = CASES[target][name][2]
            for n in (max(2, steps // 3), steps):
                limit = min(CASES[target][name][4], end - time.monotonic())
                if limit < 20 or "error" in best.get(name, {}):
                    continue
                r = once(target, name, work, 0, limit, timed=n == steps, few=n)
                if n == steps:
                    best[name] = compared(name, r, work, mtc, target, machine)
                if "processor" in r:
                    least.setdefault(name, {})
                    least[name][n] = min(least[name].get(n, r["processor"]), r["processor"])
    for name, r in best.items():
        if "error" not in r and len(least[name]) == 2:
            (a, x), (b, y) = sorted(least[name].items())
            r["step"]["measured"], r["worst"] = (y - x) / (b - a), []
            if y <= x:
                best[name] = {"error": f"{a} steps took {x:.2f} s of processor time and {b} steps {y:.2f} s: too many others use the machine"}
    return best


def finish(names, best, notes):
    """Prints and keeps the table."""
    lines, bad = [f"{'':<12} {'predicted':>12} {'measured':>12} {'off':>8}"], 0
    for name in names:
        more, good = row(name, best[name]) if name in best else ([f"{name:<12} left out: no time"], True)
        lines += more
        bad += not good
    lines += notes
    lines.append(f"{len(best) - bad} of {len(best)} within 10 % of the step and 2 % of the memory")
    text = "\n".join(lines)
    with open(os.path.join(OUT, "accuracy.txt"), "w") as f:
        f.write(text + "\n")
    with open(os.path.join(OUT, "accuracy.json"), "w") as f:
        json.dump(best, f, indent=1)
    print("\n" + text)
    return 1 if bad else 0


def busy(seconds=2.0):
    """The share of all cores' time that others use just now."""
    def ticks():
        v = [int(x) for x in open("/proc/stat").readline().split()[1:]]
        return sum(v[:8]), v[3] + v[4]
    a, x = ticks()
    time.sleep(seconds)
    b, y = ticks()
    return 1 - (y - x) / max(1, b - a)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("verb", choices=["build", "run", "list"])
    p.add_argument("names", nargs="*", metavar="NAME")
    p.add_argument("--target", choices=sorted(CASES), default="cpu")
    p.add_argument("--machine", default="", help="profile to predict for")
    p.add_argument("--rounds", type=int, default=0, help="times that each program runs (3; on cuda 1)")
    p.add_argument("--seconds", type=float, default=0, help="time that all of it may take (900; on cuda 320)")
    p.add_argument("--processor-time", action="store_true", help="one core, by the time that processes had of it")
    p.add_argument("--wall-time", action="store_true", help="time as it passes, whatever the load says")
    o = p.parse_intermixed_args()
    o.processor_time = o.target == "cpu" and (o.processor_time or not o.wall_time and o.verb == "run" and busy() > 0.1)
    o.rounds = o.rounds or (1 if o.target == "cuda" else 3)
    o.seconds = o.seconds or (320 if o.target == "cuda" else 900)
    names = o.names or list(CASES[o.target])
    for n in names:
        if n not in CASES[o.target]:
            p.error(f"there is no {n}: {', '.join(CASES[o.target])}")
    if o.verb == "list":
        for n in names:
            print(n, *CASES[o.target][n][1])
    elif o.verb == "build":
        build(o.target, names)
    else:
        sys.exit(run(o.target, names, o))


if __name__ == "__main__":
    main()
