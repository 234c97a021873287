#!/usr/bin/env bash
# Builds what is to be tried on a machine with a GPU, which needs neither Go nor a compiler then:
# all test binaries and programs for CUDA, packed in build/cuda/on-device.tar.xz for
# tools/cuda/on-device.sh. Needs `make cuda-sdk`, no GPU.
#
#   tools/cuda/test-all.sh           everything
#   tools/cuda/test-all.sh tests     the test binaries alone
#   tools/cuda/test-all.sh programs  the programs alone
set -euo pipefail
cd "$(dirname "$0")/../.."
. tools/cuda/env.sh
what=${1:-all}
out=build/cuda
say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }

if [ "$what" != programs ]; then
  rm -rf $out/tests && mkdir -p $out/tests
  packages=$(go list -tags cuda -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' \
    ./runtime/device/cuda/... ./runtime/ops/... ./runtime/optim/...)
  for dir in $packages; do
    rel=${dir#"$PWD"/}
    go test -c -tags cuda -ldflags '-s -w' -o "$out/tests/${rel//\//__}.test" "./$rel"
  done
  say "$(ls $out/tests | wc -l) test binaries"
fi

if [ "$what" != tests ]; then
  rm -rf $out/programs && mkdir -p $out/programs
  CGO_ENABLED=0 go build -o $out/mtc ./cmd/mtc
  program() { # name, .mt, flags
    local name=$1 mt=$2
    shift 2
    $out/mtc compile "$mt" -o "$out/src/$name" "$@" >/dev/null
    find "$out/src/$name" -maxdepth 1 -type f -perm -u+x -exec mv {} "$out/programs/$name" \;
    strip "$out/programs/$name" 2>/dev/null || true
  }
  for family in gpt2 llama mistral qwen2 qwen3; do
    mt=e2e/testdata/fixtures/$family.mt
    for precision in f32 bf16; do
      at="--target cuda --set train.precision=$precision"
      program "$family.$precision.resident" $mt $at
      program "$family.$precision.stream" $mt $at --placement stream --micro-batch 1
      program "$family.$precision.groups" $mt $at --placement stream --micro-batch 2 --groups 2 --recompute all --slots 3 --grad-slots 3
    done
  done
  program nano.cpu models/nano.mt
  for precision in f32 bf16; do
    program "nano.$precision.resident" models/nano.mt --target cuda --set train.precision=$precision
    program "nano.$precision.stream" models/nano.mt --target cuda --set train.precision=$precision --placement stream
  done
  rm -rf $out/src
  say "$(ls $out/programs | wc -l) programs"
fi

# One archive: the binaries share most of their bytes.
(cd $out && tar -cf - $(ls -d tests programs 2>/dev/null) | xz -T1 --lzma2=preset=1,dict=64MiB >on-device.tar.xz)
say "$(du -h $out/on-device.tar.xz | cut -f1) in $out/on-device.tar.xz"
