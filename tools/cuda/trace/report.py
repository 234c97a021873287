"""Sums up a trace that tools/cuda/trace/trace.c wrote.

    python3 tools/cuda/trace/report.py FILE [FROM [TO]]

FROM and TO are shares of the traced time (default 0.5 and 0.95, so that start-up is left out).
Prints for each kernel its calls, time, share of the window and mean, and how much of the window
some kernel ran.
"""
import sys
from collections import defaultdict


def main():
    rows = []
    for line in open(sys.argv[1], errors="replace"):
        f = line.rstrip("\n").split("\t")
        if len(f) == 6:
            rows.append((f[0], int(f[1]), int(f[2]), f[3], f[4], f[5]))
    if not rows:
        sys.exit("no records")
    first, last = min(r[1] for r in rows), max(r[2] for r in rows)
    lo, hi = (float(a) for a in (sys.argv[2:4] + ["0.5", "0.95"])[:2]) if len(sys.argv) > 3 else (0.5, 0.95)
    a, b = first + lo * (last - first), first + hi * (last - first)
    rows = sorted((r for r in rows if r[1] >= a and r[2] <= b), key=lambda r: r[1])
    total, calls, shapes = defaultdict(int), defaultdict(int), defaultdict(set)
    busy, end = 0, 0
    for name, s, e, stream, grid, block in rows:
        total[name] += e - s
        calls[name] += 1
        if len(shapes[name]) < 4:
            shapes[name].add(grid)
        if not name.startswith("copy"):
            busy += max(0, e - max(s, end))
            end = max(end, e)
    window = rows[-1][2] - rows[0][1]
    print(f"window {window / 1e6:.1f} ms, {len(rows)} records, kernels busy {100 * busy / window:.1f} %")
    for name in sorted(total, key=total.get, reverse=True)[:45]:
        t = total[name]
        print(f"{100 * t / window:6.2f} % {t / 1e6:9.2f} ms {calls[name]:6d} x {t / calls[name] / 1e3:9.1f} us  {name[:78]}  {' '.join(sorted(shapes[name]))[:60]}")


if __name__ == "__main__":
    main()
