"""Checks and times the attention kernels on a GPU without a program of mtc.

    python3 tools/cuda/attention_check.py [--quick] [--kinds mma,wgmma,plain] [--bench]
    python3 tools/cuda/attention_check.py --compile sm_90a      on a machine without a GPU, before

needs PyTorch with CUDA. Kernels are compiled with NVRTC and launched through the driver's
interface with the same arguments as runtime/ops/attention/cuda.go makes, compared with
attention in float64, hashed twice for determinism, and timed. attention_peers.py puts times
beside PyTorch's own backends.
"""
import argparse
import ctypes
import glob
import hashlib
import math
import multiprocessing
import os
import struct
import sys

import torch

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
ROOM = os.path.join(ROOT, "runtime", "ops", "attention")
KIT = os.path.join(ROOT, "runtime", "device", "cuda", "kit")
CACHE = os.path.join(ROOT, "build", "attention")  # machine code; it can be made on a machine without a GPU


def open_nvrtc():
    names = []
    for base in [os.path.join(ROOT, ".sdk", "cuda-13.0")] + sys.path + [os.path.dirname(os.path.dirname(torch.__file__)), "/usr/local/cuda"]:
        for pattern in ("nvidia/cu*/lib", "nvidia/cuda_nvrtc/lib", "lib64", "lib"):
            names += glob.glob(os.path.join(base, pattern, "libnvrtc.so*"))
    for name in [n for n in names if ".alt." not in n] + ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]:
        for b in glob.glob(os.path.join(os.path.dirname(name) or ".", "libnvrtc-builtins.so*")):
            if ".alt." not in b:
                try:
                    ctypes.CDLL(b, mode=ctypes.RTLD_GLOBAL)
                except OSError:
                    pass
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise SystemExit("libnvrtc is not found")


_nvrtc = None
_cu = None
_modules = {}


def compile_kernel(path, arch, options):
    """The machine code, from CACHE when it is there."""
    header = b""
    for part in ("mtc.cuh", "loops.cuh"):
        p = os.path.join(KIT, part)
        if os.path.exists(p):
            header += open(p, "rb").read() + b"\n"
    prog = ctypes.c_void_p()
    text = open(path, "rb").read()
    opts = [f"--gpu-architecture={arch}", "--std=c++17", "--extra-device-vectorization"] + options
    cached = os.path.join(CACHE, hashlib.sha256(header + text + " ".join(opts).encode()).hexdigest()[:24] + ".cubin")
    if os.path.exists(cached):
        return open(cached, "rb").read()
    global _nvrtc
    if _nvrtc is None:
        _nvrtc = open_nvrtc()
    n = _nvrtc
    rc = n.nvrtcCreateProgram(ctypes.byref(prog), text, os.path.basename(path).encode(), 1,
                              (ctypes.c_char_p * 1)(header), (ctypes.c_char_p * 1)(b"mtc.cuh"))
    assert rc == 0, rc
    rc = n.nvrtcCompileProgram(prog, len(opts), (ctypes.c_char_p * len(opts))(*[o.encode() for o in opts]))
    size = ctypes.c_size_t()
    n.nvrtcGetProgramLogSize(prog, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    n.nvrtcGetProgramLog(prog, log)
    text = log.value.decode().strip()
    if rc:
        raise SystemExit(f"{path} {opts}:\n{text}")
    if text:
        print(text)
    n.nvrtcGetCUBINSize(prog, ctypes.byref(size))
    image = ctypes.create_string_buffer(size.value)
    n.nvrtcGetCUBIN(prog, image)
    os.makedirs(CACHE, exist_ok=True)
    with open(cached + ".tmp%d" % os.getpid(), "wb") as f:
        f.write(image.raw)
    os.rename(f.name, cached)
    return image.raw


def ok(rc):
    if rc:
        s = ctypes.c_char_p()
        _cu.cuGetErrorString(rc, ctypes.byref(s))
        raise RuntimeError(f"driver error {rc}: {s.value}")


class Module:
    """The functions of one text with its constants."""

    def __init__(self, path, arch, options):
        global _cu
        torch.zeros(1, device="cuda")  # makes the context current
        if _cu is None:
            _cu = ctypes.CDLL("libcuda.so.1")
        image = compile_kernel(path, arch, options)
        self.module = ctypes.c_void_p()
        ok(_cu.cuModuleLoadData(ctypes.byref(self.module), image))
        self.functions = {}

    def launch(self, name, grid, threads, shared, args):
        f = self.functions.get(name)
        if f is None:
            f = ctypes.c_void_p()
            ok(_cu.cuModuleGetFunction(ctypes.byref(f), self.module, name.encode()))
            if shared > 48 << 10:
                ok(_cu.cuFuncSetAttribute(f, 8, shared))
            self.functions[name] = f
        buf = ctypes.create_string_buffer(args)
        params = (ctypes.c_void_p * 1)(ctypes.addressof(buf))
        ok(_cu.cuLaunchKernel(f, grid[0], grid[1], grid[2], threads, 1, 1, shared,
                              ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), params, None))


def up(a, b):
    return (a + b - 1) // b


def plain_launches(s, rows_q, rows_k, n_stats):
    return {
        "forward": [("attention_forward", (up(rows_q, 4), 1, 1), 128, 0)],
        "cached": [("attention_store", (up(rows_k * s.hd, 256), 1, 1), 256, 0),
                   ("attention_cached", (up(rows_q, 4), 1, 1), 128, 0)],
        "backward": [("attention_stats", (up(rows_q, 4), 1, 1), 128, 0),
                     ("attention_dkdv", (up(rows_k, 4), 1, 1), 128, 0),
                     ("attention_dq", (up(rows_q, 4), 1, 1), 128, 0)],
    }


def stats_launch(s, n_stats):
    lanes = 2
    while lanes * 8 < s.hd and lanes < 32:
        lanes *= 2
    return ("attention_stats", (up(n_stats * lanes, 256), 1, 1), 256, 0)


def mma_launches(s, rows_q, rows_k, n_stats):
    m = 128 if s.hd <= 128 else 64
    shared = (256 if s.hd <= 128 else 192) * (s.hd + 8) * 2
    return {
        "forward": [("attention_forward", (s.B * s.H, up(s.T, m), 1), 2 * m, shared)],
        "cached": [("attention_store", (up(rows_k * s.hd, 8 * 256), 1, 1), 256, 0),
                   ("attention_cached", (s.H, up(s.B * s.T, m), 1), 2 * m, shared)],
        "backward": [stats_launch(s, n_stats),
                     ("attention_dkdv", (s.B * s.KV, up(s.T, 64), 1 if s.hd <= 128 else 2), 128, shared),
                     ("attention_dq", (s.B * s.H, up(s.T, 64), 1), 128, shared)],
    }


BLOCKS = 132  # blocks that stay; they take tiles until there are none


def wgmma_launches(s, rows_q, rows_k, n_stats):
    groups = 3 if s.hd == 64 else 2
    fwd = (128 * (groups + 1), 1024 + 2 * s.hd * (64 * groups + 6 * 128))
    bwd = (384, 5120 + 2 * s.hd * (256 + (1024 if s.hd == 64 else 512)))
    return {
        "forward": [("attention_maps", (1, 1, 1), 32, 1024), ("attention_forward", (BLOCKS, 1, 1), *fwd)],
        "cached": [("attention_store", (up(rows_k * s.hd, 8 * 256), 1, 1), 256, 1024),
                   ("attention_cached", (BLOCKS, 1, 1), *fwd)],
        "backward": [(*stats_launch(s, n_stats)[:3], 1024),
                     ("attention_dkdv", (BLOCKS, 1, 1), *bwd), ("attention_dq", (BLOCKS, 1, 1), *bwd)],
    }


KINDS = {"plain": ("plain.cu", plain_launches), "mma": ("mma.cu", mma_launches), "wgmma": ("wgmma.cu", wgmma_launches)}


class Shape:
    def __init__(self, B, T, H, KV, hd, window=0, causal=True, cap=0.0, scale=None):
        self.B, self.T, self.H, self.KV, self.hd = B, T, H, KV, hd
        self.window, self.causal, self.cap = window, causal, cap
        self.scale = scale or 1 / math.sqrt(hd)

    def __str__(self):
        t = f"B {self.B} T {self.T} H {self.H}/{self.KV} hd {self.hd}"
        if self.window:
            t += f" window {self.window}"
        if self.cap:
            t += f" cap {self.cap}"
        return t + ("" if self.causal else " full")

    def pairs(self):
        """Visible pairs of one head of one sequence."""
        w = min(self.window or self.T, self.T)
        below = w * (w + 1) // 2 + (self.T - w) * w
        return below if self.causal else 2 * below - self.T

    def flops(self):
        return 4 * self.B * self.H * self.pairs() * self.hd


def options_of(hd, cap, f32):
    return [f"-DS0={hd}"] + (["-DS1=1"] if cap else []) + (["-DMTC_F32"] if f32 else [])


class Kernels:
    def __init__(self, kind, f32=False):
        self.kind, self.f32 = kind, f32
        major, minor = torch.cuda.get_device_capability()
        self.arch = f"sm_{major}{minor}" + ("a" if major >= 9 else "")

    def run(self, what, s, ptrs, work=None, seq=None, pos=0):
        file, launches = KINDS[self.kind]
        key = (file, self.f32, s.hd, s.cap > 0)
        m = _modules.get(key)
        if m is None:
            m = _modules[key] = Module(os.path.join(ROOM, file), self.arch, options_of(s.hd, s.cap > 0, self.f32))
        run = Shape(s.B, seq or s.T, s.H, s.KV, s.hd, s.window, s.causal, s.cap, s.scale)
        p = [x.data_ptr() if isinstance(x, torch.Tensor) else x for x in ptrs]
        args = struct.pack("20Q16q8fQ", *(p + [0] * (20 - len(p))),
                           *([run.B, run.T, pos, run.H, run.KV, run.hd, run.window, int(run.causal)] + [0] * 8),
                           *([run.cap, run.scale] + [0.0] * 6), work.data_ptr() if work is not None else 0)
        padded = up(run.T, 128) * 128
        for name, grid, threads, shared in launches(run, run.B * run.T * run.H, run.B * run.T * run.KV, run.B * run.H * padded)[what]:
            m.launch(name, grid, threads, shared, args)


def work_for(s):
    return torch.full((8 * s.B * s.H * up(s.T, 128) * 128 + (1 << 20),), 255, dtype=torch.uint8, device="cuda")


def reference(s, q, k, v, dy):
    """y, lse, dq, dk, dv in float64, head by head."""
    B, T, H, KV, hd = s.B, s.T, s.H, s.KV, s.hd
    q, k, v, dy = (x.double().view(B, T, -1, hd) for x in (q, k, v, dy))
    y, lse = torch.empty_like(q), torch.empty(B, T, H, dtype=torch.float64, device=q.device)
    dq, dk, dv = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
    i = torch.arange(T, device=q.device)
    d = i[:, None] - i[None, :]
    seen = torch.ones(T, T, dtype=torch.bool, device=q.device)
    if s.causal:
        seen &= d >= 0
    if s.window:
        seen &= (d < s.window) & (-d < s.window)
    for b in range(B):
        for h in range(H):
            g = h // (H // KV)
            x = q[b, :, h] @ k[b, :, g].T * s.scale
            slope = None
            if s.cap:
                th = torch.tanh(x / s.cap)
                x, slope = s.cap * th, 1 - th * th
            x = x.masked_fill(~seen, -math.inf)
            lse[b, :, h] = torch.logsumexp(x, 1)
            p = torch.exp(x - lse[b, :, h, None])
            y[b, :, h] = p @ v[b, :, g]
            dp = dy[b, :, h] @ v[b, :, g].T
            ds = p * (dp - (dy[b, :, h] * y[b, :, h]).sum(1, keepdim=True)) * s.scale
            if slope is not None:
                ds = ds * slope
            dv[b, :, g] += p.T @ dy[b, :, h]
            dq[b, :, h] = ds @ k[b, :, g]
            dk[b, :, g] += ds.T @ q[b, :, h]
    return [x.reshape(B, T, -1) for x in (y, lse, dq, dk, dv)]


def inputs(s, f32=False, seed=0):
    gen = torch.Generator(device="cuda").manual_seed(seed)
    kind = torch.float32 if f32 else torch.bfloat16
    make = lambda n: torch.randn(s.B, s.T, n * s.hd, generator=gen, device="cuda").to(kind)
    return make(s.H), make(s.KV), make(s.KV), make(s.H)


def poison(*like):
    return [torch.full_like(x, float("nan")) for x in like]


def forward_backward(kern, s, q, k, v, dy, adds=(0, 0, 0)):
    y, = poison(q)
    lse = torch.full((s.B, s.T, s.H), float("nan"), device="cuda")
    dq, dk, dv = poison(q, k, v)
    kern.run("forward", s, [q, k, v, y, lse], work_for(s))
    kern.run("backward", s, [q, k, v, y, lse, dy, dq, dk, dv, *adds], work_for(s))
    return y, lse, dq, dk, dv


def digest(tensors):
    h = hashlib.sha256()
    for x in tensors:
        h.update(x.contiguous().view(torch.uint8).cpu().numpy().tobytes())
    return h.hexdigest()[:12]


def maps_agree(s):
    """Compares the tensor maps that the kernels build with the driver's own: the half that holds
    the fields. Behind it a driver of CUDA 13 writes two numbers more, which no instruction of PTX
    sets and the copies do without."""
    q, k, v, _ = inputs(s)
    y, = poison(q)
    lse, work = torch.empty(s.B, s.T, s.H, device="cuda"), work_for(s)
    Kernels("wgmma").run("forward", s, [q, k, v, y, lse], work)
    torch.cuda.synchronize()
    made = work[:384].cpu().numpy().tobytes()
    for i, (x, heads) in enumerate(((q, s.H), (k, s.KV), (v, s.KV))):
        want = (ctypes.c_char * 192)()
        at = (-ctypes.addressof(want)) % 64
        dims = (ctypes.c_uint64 * 4)(s.hd, heads, s.T, s.B)
        strides = (ctypes.c_uint64 * 3)(2 * s.hd, 2 * s.hd * heads, 2 * s.hd * heads * s.T)
        ok(_cu.cuTensorMapEncodeTiled(ctypes.c_void_p(ctypes.addressof(want) + at), 9, 4, ctypes.c_void_p(x.data_ptr()), dims, strides,
                                      (ctypes.c_uint32 * 4)(64, 1, 64, 1), (ctypes.c_uint32 * 4)(1, 1, 1, 1), 0, 3, 0, 0))
        got, ref = made[128 * i:128 * i + 128], bytes(want)[at:at + 128]
        if got[:64] != ref[:64]:
            print(f"map {i} differs from the driver's:\n  made   {got.hex()}\n  driver {ref.hex()}", flush=True)


def rel(got, want):
    got, want = got.double(), want.double()
    if not torch.isfinite(got).all():
        return float("nan")
    n = want.norm().item()
    d = (got - want).norm().item()
    return d if n < 1e-6 else d / n


def check(kind, s, f32=False):
    """One shape: values, adds, determinism, cached. Returns the number of failures."""
    kern = Kernels(kind, f32)
    q, k, v, dy = inputs(s, f32, seed=s.T)
    want = reference(s, q, k, v, dy)
    got = forward_backward(kern, s, q, k, v, dy)
    limits = [1e-5, 1e-5, 2e-5, 2e-5, 2e-5] if f32 else [5e-3, 1e-5, 8e-3, 8e-3, 8e-3]
    errs = [rel(g, w) for g, w in zip(got, want)]
    bad = [n for n, e, l in zip("y lse dq dk dv".split(), errs, limits) if not e <= l]
    if digest(got) != digest(forward_backward(kern, s, q, k, v, dy)):
        bad.append("two runs differ")
    adds = inputs(s, f32, seed=99)[:3]
    with_adds = forward_backward(kern, s, q, k, v, dy, adds)[2:]
    for name, g, w, a in zip(("dq", "dk", "dv"), with_adds, want[2:], adds):
        if not rel(g, w + a.double()) <= limits[2]:
            bad.append(f"Add {name}: {rel(g, w + a.double()):.1e}")
    if s.causal and s.B == 1:
        for chunk in (1, 7, 64, 130, s.T):
            if chunk == 1 and s.T > 300:
                continue
            kc, vc, z = poison(k, v, q)
            for pos in range(0, s.T, chunk):
                n = min(chunk, s.T - pos)
                part = [x[:, pos:pos + n].contiguous() for x in (q, k, v)]
                out, = poison(part[0])
                kern.run("cached", s, [*part, kc, vc, out], work_for(s), seq=n, pos=pos)
                z[:, pos:pos + n] = out
            if not torch.equal(z.view(torch.uint8), got[0].view(torch.uint8)):
                bad.append(f"cached by {chunk} differs, {rel(z, got[0]):.1e}")
    print(f"{'ok  ' if not bad else 'FAIL'} {kind}{' f32' if f32 else ''} {s}: "
          + " ".join(f"{n} {e:.1e}" for n, e in zip("y lse dq dk dv".split(), errs))
          + (f"   {bad}" if bad else ""), flush=True)
    return len(bad)


def time_ms(f, budget=0.3):
    f()
    torch.cuda.synchronize()
    a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    times = []
    spent = 0.0
    while len(times) < 5 or (spent < budget * 1e3 and len(times) < 50):
        a.record()
        f()
        b.record()
        torch.cuda.synchronize()
        times.append(a.elapsed_time(b))
        spent += times[-1]
    times.sort()
    return times[len(times) // 2]


PEER_SHAPES = [
    Shape(64, 1024, 28, 4, 128), Shape(8, 8192, 28, 4, 128), Shape(1, 32768, 28, 4, 128),
    Shape(64, 1024, 12, 12, 64), Shape(8, 8192, 12, 12, 64),
]
LONG_SHAPES = [Shape(1, 131072, 28, 4, 128), Shape(1, 262144, 28, 4, 128)]


def bench(kind, s, parts=False):
    """TFLOP/s forward and backward, counted causally."""
    kern = Kernels(kind)
    q, k, v, dy = inputs(s)
    y, dq, dk, dv = (torch.empty_like(x) for x in (q, q, k, v))
    lse, work = torch.empty(s.B, s.T, s.H, device="cuda"), work_for(s)
    f = time_ms(lambda: kern.run("forward", s, [q, k, v, y, lse], work))
    b = time_ms(lambda: kern.run("backward", s, [q, k, v, y, lse, dy, dq, dk, dv], work))
    text = ""
    if parts:
        file, launches = KINDS[kind]
        all_ = launches(s, s.B * s.T * s.H, s.B * s.T * s.KV, s.B * s.H * up(s.T, 128) * 128)["backward"]
        # Each prefix of the launches, and differences: the first one sets the counters.
        before = 0.0
        for i, one in enumerate(all_):
            KINDS["part"] = (file, lambda *_, i=i: {"backward": all_[:i + 1]})
            part = Kernels("part")
            ms = time_ms(lambda: part.run("backward", s, [q, k, v, y, lse, dy, dq, dk, dv], work))
            text += f" {one[0].replace('attention_', '')} {ms - before:.3f} ms"
            before = ms
        del KINDS["part"]
    return s.flops() / f / 1e9, 2.5 * s.flops() / b / 1e9, text


CHECKS = [
    Shape(2, 1, 4, 4, 64), Shape(1, 17, 4, 1, 64), Shape(1, 64, 7, 1, 128), Shape(1, 127, 7, 7, 128),
    Shape(2, 1024, 8, 2, 64), Shape(2, 1024, 7, 1, 128), Shape(1, 4096, 4, 1, 128), Shape(1, 4096, 2, 2, 64),
    Shape(1, 1000, 4, 2, 80), Shape(1, 333, 4, 4, 96), Shape(1, 520, 2, 1, 256), Shape(1, 130, 2, 2, 208),
    Shape(1, 1024, 4, 2, 128, window=256), Shape(1, 777, 4, 4, 64, window=100), Shape(1, 600, 2, 1, 256, window=33),
    Shape(1, 1024, 4, 2, 128, cap=30.0), Shape(1, 511, 4, 4, 64, cap=2.0, window=200), Shape(1, 300, 2, 1, 256, cap=2.0),
    Shape(2, 300, 2, 1, 64, causal=False), Shape(1, 700, 2, 2, 128, causal=False, window=65), Shape(1, 300, 4, 2, 32),
]

PLAIN_CHECKS = [Shape(1, 150, 2, 1, 20), Shape(1, 90, 2, 1, 50, cap=1.5)]


def takes(kind, s):
    """Which shapes are checked with a kind."""
    return {"plain": s.T <= 1100, "mma": True, "wgmma": s.hd in (64, 128)}[kind]


def compile_job(job):
    compile_kernel(*job)


def compile_all(arch, kinds):
    """Fills CACHE with what the checks and timings need."""
    jobs = set()
    for kind in kinds:
        for s in CHECKS + PLAIN_CHECKS + PEER_SHAPES:
            for f32 in (False, True):
                if takes(kind, s) and s.hd % (1 if kind == "plain" else 16) == 0 and (not f32 or kind == "plain"):
                    jobs.add((os.path.join(ROOM, KINDS[kind][0]), arch, tuple(options_of(s.hd, s.cap > 0, f32))))
    with multiprocessing.Pool() as pool:
        pool.map(compile_job, [(f, a, list(o)) for f, a, o in sorted(jobs)], chunksize=1)
    print(f"{len(jobs)} compilations in {CACHE}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--kinds", default=",".join(KINDS))
    p.add_argument("--quick", action="store_true", help="every third shape")
    p.add_argument("--bench", action="store_true", help="time them too")
    p.add_argument("--no-check", action="store_true")
    p.add_argument("--compile", metavar="ARCH", help="only compile, for sm_90a say: needs no GPU")
    o = p.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    kinds = o.kinds.split(",")
    if o.compile:
        compile_all(o.compile, kinds)
        return 0
    bad = 0
    if "wgmma" in kinds:
        maps_agree(Shape(2, 100, 4, 2, 128))
    if not o.no_check:
        for kind in kinds:
            for s in CHECKS[::3] if o.quick else CHECKS:
                if takes(kind, s):
                    try:
                        bad += check(kind, s, f32=kind == "plain")
                    except RuntimeError as e:
                        print(f"FAIL {kind} {s}: {e}")
                        raise
        if "plain" in kinds:
            for s in PLAIN_CHECKS:
                bad += check("plain", s) + check("plain", s, f32=True)
        print(f"{bad} failures")
    if o.bench:
        for kind in kinds:
            if kind != "plain":
                for s in PEER_SHAPES:
                    f, b, text = bench(kind, s, parts=True)
                    print(f"{kind} {s}: forward {f:.0f} backward {b:.0f} TFLOP/s;{text}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
