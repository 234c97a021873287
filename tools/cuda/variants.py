#!/usr/bin/env python3
"""Times a program under several settings of the environment, in turns, and compares their losses.

    tools/cuda/variants.py [--steps N] [--skip N] [--turns N] [--vocab V] PROGRAM SETTING...

A setting is NAME=VALUE, several joined by commas, or - for none; one that begins with @ is another build of
the program, which runs instead. Each turn runs the program once with each,
on the same random tokens; steps after the first SKIP count. Prints the least median of a step's ms of
each setting's turns, and whether the losses have the bits of the first setting's. Exit 1 if not.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np


def shard(path, vocab):
    head = np.zeros(256, np.int32)
    head[:3] = (20240520, 1, 4_000_000)
    with open(path, "wb") as f:
        head.tofile(f)
        np.random.default_rng(1).integers(0, min(vocab, 65536), 4_000_000, np.uint32).astype(np.uint16).tofile(f)


def run(program, setting, steps, work, data, nth):
    env = dict(os.environ, XDG_CACHE_HOME=os.path.join(work, "cache"))
    if setting.startswith("@"):
        program, setting = os.path.abspath(setting[1:]), "-"
    env.update(s.split("=", 1) for s in setting.split(",") if s != "-")
    out = os.path.join(work, f"run{nth}")
    subprocess.run([program, "--data", data, "--eval-every", "0", "--no-save", "--no-memory-check", "--steps", str(steps), "--out", out],
                   env=env, cwd=work, check=True, stdout=subprocess.DEVNULL, timeout=100)
    rows = [json.loads(line) for line in open(os.path.join(out, "metrics.jsonl"))]
    rows = [r for r in rows if "ms" in r and "loss" in r]
    return [r["ms"] for r in rows], [(r["loss"], r.get("grad_norm")) for r in rows]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--skip", type=int, default=10)
    p.add_argument("--turns", type=int, default=2)
    p.add_argument("--vocab", type=int, default=256)
    p.add_argument("program")
    p.add_argument("setting", nargs="+")
    a = p.parse_args()
    times, first, bad, n = {s: [] for s in a.setting}, None, False, 0
    with tempfile.TemporaryDirectory() as work:
        data = os.path.join(work, "tokens.bin")
        shard(data, a.vocab)
        same = {}
        for _ in range(a.turns):
            for s in a.setting:
                ms, losses = run(os.path.abspath(a.program), s, a.steps, work, data, n)
                n += 1
                times[s].append(statistics.median(ms[a.skip:]))
                first = first or losses
                same[s] = same.get(s, True) and losses == first
    for s in a.setting:
        bad |= not same[s]
        print(f"{os.path.basename(a.program):24s} {s:44s} {min(times[s]):9.3f} ms a step  ({', '.join(f'{t:.3f}' for t in times[s])})"
              f"  losses {'equal' if same[s] else 'DIFFER'}")
    sys.exit(bad)


main()
