"""Attention's rate beside PyTorch's flash and cuDNN backends, in one run:

    python3 tools/cuda/attention_peers.py [--long] [--kinds wgmma,mma]

TFLOP/s count the visible pairs of causal attention: 4 hd a pair forward, 10 hd backward.
"""
import argparse

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import attention_check as ours


def peer(backend, s):
    shape = lambda n: (s.B, s.T, n, s.hd)
    q, k, v, dy = ours.inputs(s)
    q, k, v = (x.view(shape(n)).transpose(1, 2).detach().requires_grad_() for x, n in ((q, s.H), (k, s.KV), (v, s.KV)))
    dy = dy.view(shape(s.H)).transpose(1, 2)
    run = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=s.H != s.KV)
    with sdpa_kernel(backend):
        with torch.no_grad():
            f = ours.time_ms(run)
        y = run()

        def back():
            q.grad = k.grad = v.grad = None
            y.backward(dy, retain_graph=True)

        b = ours.time_ms(back)
    return s.flops() / f / 1e9, 2.5 * s.flops() / b / 1e9


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--kinds", default=",".join(k for k in ours.KINDS if k != "plain"))
    p.add_argument("--long", action="store_true", help="sequences of 131,072 and 262,144 too")
    o = p.parse_args()
    print(f"{torch.cuda.get_device_name()}, TFLOP/s forward / backward")
    for s in ours.PEER_SHAPES + (ours.LONG_SHAPES if o.long else []):
        row = f"{str(s):34s}"
        for name, backend in (("flash", SDPBackend.FLASH_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION)):
            try:
                row += " {} {:4.0f} / {:4.0f}".format(name, *peer(backend, s))
            except RuntimeError as e:
                row += f" {name} {str(e).splitlines()[0][:40]}"
        for kind in o.kinds.split(","):
            row += " {} {:4.0f} / {:4.0f}".format(kind, *ours.bench(kind, s)[:2])
        print(row, flush=True)


if __name__ == "__main__":
    main()
