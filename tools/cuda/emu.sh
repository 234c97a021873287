#!/usr/bin/env bash
# A program for CUDA on a machine without a GPU: kernels are compiled for this processor and the
# driver's, NVRTC's and cuBLASLt's places are taken by the stand-ins of the device's tests
# (runtime/device/cuda/emu). Slow; what it computes is what a GPU without tensor cores would.
#
#   tools/cuda/emu.sh build            the stand-ins, in build/cuda/emu
#   tools/cuda/emu.sh PROGRAM [ARG...]  runs a program over them
#
# MTC_FAKE_CUDA adds faults to them (standin/driver.c has the list), MTC_FAKE_FAIL=NAME:N:RESULT makes the
# N-th call fail whose name begins so (standin/fault.h).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$root/build/cuda/emu
# emucc is made last: older than their texts, the stand-ins are made again.
if [ "${1:-}" = build ] || [ ! -f "$dir/emucc" ] || [ -n "$(find "$root/runtime/device/cuda/emu" "$root/runtime/device/cuda/kit" -type f -newer "$dir/emucc")" ]; then
  cd "$root"
  . tools/cuda/env.sh
  mkdir -p "$dir"
  src=runtime/device/cuda/emu/standin
  gcc -O1 -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$dir/libcuda.so.1" $src/driver.c -lpthread -ldl
  gcc -O3 -march=native -shared -fPIC -o "$dir/libcublasLt.so.13" $src/blaslt.c "$dir/libcuda.so.1"
  gcc -O1 -shared -fPIC -o "$dir/libnvrtc.so.13" $src/nvrtc.c
  go build -tags cuda -o "$dir/emucc" ./runtime/device/cuda/emu/emucc
  touch "$dir/emucc"
  [ "${1:-}" != build ] || exit 0
  cd - >/dev/null
fi
export LD_LIBRARY_PATH=$dir MTC_EMUCC=$dir/emucc MTC_FAKE_CUDA=emu${MTC_FAKE_CUDA:+,$MTC_FAKE_CUDA}
exec "$@"
