#!/usr/bin/env bash
# make cuda-sdk: what a build for CUDA needs, in .sdk, on a machine without a CUDA toolkit and
# without root. Running it again does only what is missing.
#
#   .sdk/cuda-13.0/include, lib   headers and NVRTC, from PyPI's wheels of the 13.0 series
#   .sdk/stub/libcuda.a           link stub of the driver's library (tools/cuda/stub)
#   .sdk/cuda.env                 where they are, for make and `mtc compile --target cuda`
#
# A toolkit of the system (12.4 or newer; CUDA_HOME, CUDA_PATH or /usr/local/cuda) is used in
# the place of the wheels. MTC_SDK_WHEELS=1 ignores it.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD
sdk=$here/.sdk
need=12040
die() { printf 'cuda-sdk: %s\n' "$*" >&2; exit 3; }
CC=${CC:-cc}
command -v "$CC" >/dev/null || die "a C compiler is needed, and there is no \`$CC\`: install gcc"

version_of() { # folder of cuda.h -> CUDA_VERSION
  sed -n 's/^#define CUDA_VERSION \([0-9]*\).*/\1/p' "$1/cuda.h" 2>/dev/null | head -1
}

include= lib= from=
if [ -z "${MTC_SDK_WHEELS:-}" ]; then
  for home in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
    [ -n "$home" ] && [ -f "$home/include/cuda.h" ] || continue
    v=$(version_of "$home/include")
    if [ "${v:-0}" -ge $need ]; then
      include=$home/include
      for d in lib64 lib; do [ -d "$home/$d" ] && { lib=$home/$d; break; }; done
      from="toolkit $((v / 1000)).$((v % 1000 / 10)) in $home"
      break
    fi
    echo "cuda-sdk: the toolkit in $home is older than 12.4 and is left aside" >&2
  done
fi

if [ -z "$include" ]; then
  to=$sdk/cuda-13.0
  stamp=$(cksum <tools/cuda/requirements.txt)
  if [ "$(cat "$to/.stamp" 2>/dev/null)" != "$stamp" ]; then
    [ "$(uname -m)" = x86_64 ] || die "the wheels are for x86_64: install CUDA's toolkit and set CUDA_HOME"
    command -v python3 >/dev/null || die "python3 with pip is needed to fetch the wheels: install it, or a CUDA toolkit"
    mkdir -p "$sdk"
    tmp=$(mktemp -d "$sdk/tmp.XXXXXX")
    trap 'rm -rf "$tmp"' EXIT
    python3 -m pip --disable-pip-version-check download -q --no-deps --only-binary=:all: \
      --platform manylinux2014_x86_64 --platform manylinux2010_x86_64 \
      --require-hashes -r tools/cuda/requirements.txt -d "$tmp/wheels" ||
      die "the wheels could not be fetched: look at the message above, or install CUDA's toolkit and set CUDA_HOME"
    for w in "$tmp"/wheels/*.whl; do python3 -m zipfile -e "$w" "$tmp/all"; done
    mkdir -p "$tmp/sdk/lib"
    mv "$tmp/all/nvidia/cu13/include" "$tmp/sdk/include"
    mv "$tmp"/all/nvidia/cu13/lib/libnvrtc.so.* "$tmp"/all/nvidia/cu13/lib/libnvrtc-builtins.so.* "$tmp/sdk/lib/"
    printf '%s\n' "$stamp" >"$tmp/sdk/.stamp"
    rm -rf "$to"
    mv "$tmp/sdk" "$to"
  fi
  include=$to/include lib=$to/lib from="wheels of CUDA 13.0 in ${to#"$here"/}"
fi

# The stub: every function that cuda.h declares, under the name that the linker sees.
mkdir -p "$sdk/stub"
printf '#include <cuda.h>\n' | "$CC" -E -P -I"$here/runtime/device/cuda/shim" -I"$include" - |
  tr '\n' ' ' | grep -oE 'CUresult +cu[A-Z][A-Za-z0-9_]*' | sed 's/.* //' | grep -vx cuInit |
  LC_ALL=C sort -u | awk '{ printf "X(%s, %d)\n", $1, NR - 1 }' >"$sdk/stub/symbols.new"
[ "$(wc -l <"$sdk/stub/symbols.new")" -gt 300 ] || die "$include/cuda.h declares too few functions"
if ! cmp -s "$sdk/stub/symbols.new" "$sdk/stub/symbols.inc" || [ ! -f "$sdk/stub/libcuda.a" ] ||
  [ tools/cuda/stub/libcuda.c -nt "$sdk/stub/libcuda.a" ]; then
  mv "$sdk/stub/symbols.new" "$sdk/stub/symbols.inc"
  "$CC" -O1 -fPIC -Wall -Werror -I"$sdk/stub" -c tools/cuda/stub/libcuda.c -o "$sdk/stub/libcuda.o"
  rm -f "$sdk/stub/libcuda.a"
  ar rc "$sdk/stub/libcuda.a" "$sdk/stub/libcuda.o"
fi
rm -f "$sdk/stub/symbols.new"

cat >"$sdk/cuda.env" <<EOF
CGO_ENABLED=1
CGO_CFLAGS=-O2 -g -I$here/runtime/device/cuda/shim -I$include
CGO_LDFLAGS=-L$sdk/stub -ldl -lpthread
EOF
echo "cuda-sdk: $from; $(wc -l <"$sdk/stub/symbols.inc") functions in the link stub"
