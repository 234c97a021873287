"""Compares what a program computed with what is right.

  compare.py DUMP FIXTURE TOLERANCE   a debug-step dump against a fixture, by kind of tensor
  compare.py DUMP FIXTURE bf16        the same, for a program in bf16
  compare.py --curve RUN REFERENCE TOLERANCE
                                      the losses of two runs' metrics, step by step

Prints one line; the exit status is 1 when a difference is larger than allowed. The rules are
those of e2e: a tensor's scale is its largest value, but at least a hundredth of its kind's.

In bf16 the logits and the first gradients may differ by half as much again as PyTorch's do for
the same model (bf16.json, made by tools/fixtures/bf16.py): a single element at the worst, and
all of them together (||got - want|| / ||want||), which a wrong tensor cannot pass. Losses, norms
and weights of the ten steps, for which master weights are float32, have one bound each.
"""
import json
import os
import sys


def read(path):
    """Tensors of a safetensors file, as float64."""
    import numpy as np

    raw = open(path, "rb").read()
    n = int.from_bytes(raw[:8], "little")
    types = {"F32": np.float32, "F64": np.float64, "I32": np.int32}
    out = {}
    for name, t in json.loads(raw[8 : 8 + n]).items():
        if name == "__metadata__":
            continue
        a, b = t["data_offsets"]
        out[name] = np.frombuffer(raw[8 + n + a : 8 + n + b], types[t["dtype"]]).astype(np.float64)
    return out


# BF16 bounds what goes through updates: three times what was seen on an H200.
BF16 = {"loss": 5e-3, "norm": 5e-2, "final": 3e-2}


def allowances(fixture, tolerance):
    """By kind; "KIND norm" is for all of its tensors together."""
    if tolerance != "bf16":
        return dict.fromkeys(("loss", "norm", "logits", "grad", "final"), float(tolerance))
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "bf16.json")) as f:
        torch = json.load(f)[os.path.basename(fixture).split(".")[0]]
    return BF16 | {kind: 1.5 * v for kind, v in torch.items()}


def tensors(dump, fixture, tolerance):
    import numpy as np

    got, want, allowed = read(dump), read(fixture), allowances(fixture, tolerance)
    parts, bad = [], []
    for kind in ("loss", "norm", "logits", "grad", "final"):
        names = [n for n in want if n == kind or n.startswith(kind + ".")]
        if not names:
            continue
        top = max(np.abs(want[n]).max() for n in names)
        worst, where, far, size = -1.0, "", 0.0, 0.0
        for n in names:
            if n not in got or got[n].size != want[n].size:
                bad.append(n + " is missing or has another size")
                continue
            diff = np.abs(got[n] - want[n]).max() if want[n].size else 0.0
            share = diff / max(np.abs(want[n]).max(), top / 100)
            if not np.isfinite(share):
                share = np.inf
            if share > worst:
                worst, where = share, n
            if not share <= allowed[kind]:
                bad.append(f"{n}: {share:.3g}, and {allowed[kind]:.3g} is allowed")
            far += np.square(got[n] - want[n]).sum()
            size += np.square(want[n]).sum()
        far = np.sqrt(far / size)
        if kind + " norm" in allowed and not far <= allowed[kind + " norm"]:
            bad.append(f"all of {kind}: {far:.3g}, and {allowed[kind + ' norm']:.3g} is allowed")
        parts.append(f"{kind} {worst:.1e}")
        print(f"{kind}: the largest difference is {worst:.3g} ({where}; {allowed[kind]:.3g} is allowed), of all together {far:.3g}", file=sys.stderr)
    for b in bad[:20]:
        print("  over:", b, file=sys.stderr)
    print(", ".join(parts) + (f"; {len(bad)} too large, first {bad[0]}" if bad else ""))
    return 1 if bad else 0


def curve(run, reference, tolerance):
    def losses(path):
        rows = (json.loads(line) for line in open(path))
        return {r["step"]: r["loss"] for r in rows if r.get("loss") is not None}

    a, b = losses(run), losses(reference)
    steps = sorted(set(a) & set(b))
    if not steps:
        print("no step in common")
        return 1
    worst = max(steps, key=lambda s: abs(a[s] - b[s]))
    last = steps[-1]
    print(f"loss {a[steps[0]]:.4f} to {a[last]:.4f} (reference {b[last]:.4f}); largest difference {abs(a[worst] - b[worst]):.1e} at step {worst}")
    return 0 if abs(a[worst] - b[worst]) <= float(tolerance) else 1


if __name__ == "__main__":
    if sys.argv[1] == "--curve":
        sys.exit(curve(sys.argv[2], sys.argv[3], sys.argv[4]))
    sys.exit(tensors(sys.argv[1], sys.argv[2], sys.argv[3]))
