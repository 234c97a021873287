#!/usr/bin/env bash
# Builds build/cuda/trace/libtrace.so (trace.c) and puts CUPTI beside it. Then, with a GPU:
#
#   t=$PWD/build/cuda/trace
#   MTC_TRACE=/tmp/trace CUDA_INJECTION64_PATH=$t/libtrace.so LD_LIBRARY_PATH=$t PROGRAM ...
#   python3 tools/cuda/trace/report.py /tmp/trace
set -euo pipefail
cd "$(dirname "$0")/../../.."
out=build/cuda/trace
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m pip --disable-pip-version-check download -q --no-deps --only-binary=:all: \
  --platform manylinux2014_x86_64 --platform manylinux_2_25_x86_64 \
  --require-hashes -r tools/cuda/trace/requirements.txt -d "$tmp/wheels"
for w in "$tmp"/wheels/*.whl; do python3 -m zipfile -e "$w" "$tmp/all"; done
mkdir -p $out
cp "$tmp"/all/nvidia/cu13/lib/libcupti.so.13 $out/
"${CC:-cc}" -shared -fPIC -O1 -I "$tmp/all/nvidia/cu13/include" -o $out/libtrace.so tools/cuda/trace/trace.c -L $out -l:libcupti.so.13
echo "$out/libtrace.so"
