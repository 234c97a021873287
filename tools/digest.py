#!/usr/bin/env python3
"""Finds where two runs part, or where a run is not what it recomputes.

    MTC_DIGEST=a.jsonl PROGRAM ...        of a program compiled with --check-nan
    tools/digest.py a.jsonl b.jsonl       the values of which bits differ, in the order of the first
    tools/digest.py a.jsonl               forward passes and the same values made again

A value is known by its unit, function, micro-batch, op, name and line, and by how often it was
made before: plans may order tasks differently. Prints the first COUNT differences (default 12), with
how far each value is aligned in its arena. Exit 1 if there are any.
"""

import collections
import json
import sys


def read(path):
    with open(path) as f:
        for text in f:
            yield json.loads(text)


def keyed(lines, func=None):
    """Values by key; lines of other functions than func are left out."""
    seen, out = collections.Counter(), {}
    for d in lines:
        if func and d["func"] != func:
            continue
        key = (d["unit"], func or d["func"], d["micro"], d["op"], d["value"], d["line"])
        out[key + (seen[key],)] = d
        seen[key] += 1
    return out


def align(d):
    at = d["at"]
    return at & -at if at else 0


def show(key, a, b, what):
    unit, func, micro, op, value, line, nth = key
    print(f"{what}: {func} of {unit}, micro-batch {micro}, `{value}` of {op} ({line}), "
          f"[{a['rows']}, {a['width']}], time {nth + 1}; at {a['at']} mod 256 = {a['at'] % 256}, "
          f"{b['at']} mod 256 = {b['at'] % 256}")


def report(a, b, what, count):
    same, bad = 0, 0
    for key, x in a.items():
        y = b.get(key)
        if y is None or (x["rows"], x["width"]) != (y["rows"], y["width"]):
            continue
        if x["hash"] == y["hash"]:
            same += 1
            continue
        if bad < count:
            show(key, x, y, what)
        bad += 1
    print(f"{what}: {same} values equal, {bad} differ, {len(a.keys() - b.keys())} and {len(b.keys() - a.keys())} in one alone")
    return bad


def main():
    args = sys.argv[1:]
    count = 12
    if args and args[0].startswith("-n"):
        count = int(args.pop(0)[2:])
    runs = [list(read(p)) for p in args]
    if len(runs) == 2:
        sys.exit(report(keyed(runs[0]), keyed(runs[1]), "differs", count) > 0)
    first = keyed(runs[0], "forward")
    again = {k[:1] + ("forward",) + k[2:]: d for f in ("recompute",) for k, d in keyed(runs[0], f).items()}
    sys.exit(report(first, again, "made again", count) > 0)


main()
