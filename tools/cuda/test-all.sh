#!/usr/bin/env bash
# Builds what is to be tried on a machine with a GPU, which needs neither Go nor a compiler then:
# all test binaries and programs for CUDA, packed in build/cuda/on-device.tar.xz for
# tools/cuda/on-device.sh. Needs `make cuda-sdk`, no GPU.
#
#   tools/cuda/test-all.sh           everything
#   tools/cuda/test-all.sh tests     the test binaries alone
#   tools/cuda/test-all.sh programs  the programs alone
#   tools/cuda/test-all.sh routers   models with a mixture of experts and their tests, in an archive of its own
#   tools/cuda/test-all.sh seven     Qwen2.5 7B, in an archive of its own
#   tools/cuda/test-all.sh peers     GPT-2 124M, likewise
#
# MTC_SMALL=1 makes nano small enough for tools/cuda/emu.sh; MTC_FAMILIES names some models.
# MTC_OUT is another folder than build/cuda.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tools/cuda/env.sh
what=${1:-all}
out=${MTC_OUT:-build/cuda}
say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }

program() { # name, .mt, flags
  local name=$1 mt=$2
  shift 2
  $out/mtc compile "$mt" -o "$out/src/$name" "$@" >/dev/null
  find "$out/src/$name" -maxdepth 1 -type f -perm -u+x -exec mv {} "$out/programs/$name" \;
  strip "$out/programs/$name" 2>/dev/null || true
}
if [ "$what" = seven ] || [ "$what" = peers ]; then
  rm -rf $out/programs && mkdir -p $out/programs
  CGO_ENABLED=0 go build -o $out/mtc ./cmd/mtc
  if [ "$what" = seven ]; then
    program 7b models/qwen2.5-7b.mt --target cuda --set train.seq=1024 --set "train.batch=16384 tokens" --set train.eval=none \
      --placement stream --device-memory 40GiB --recompute all
  else
    program gpt2.peer models/gpt2.mt --target cuda --set train.seq=1024 --set "train.batch=65536 tokens" --set train.eval=none --micro-batch 32
  fi
  rm -rf $out/src
  (cd $out && tar -cf - programs | xz -T1 --lzma2=preset=1,dict=64MiB >on-device-$what.tar.xz)
  say "$(du -h $out/on-device-$what.tar.xz | cut -f1) in $out/on-device-$what.tar.xz"
  exit
fi

if [ "$what" = routers ]; then
  rm -rf $out/routers && mkdir -p $out/routers
  MTC_BUILD=$(cd $out && pwd)/routers go test -count=1 -run TestBuild ./e2e/routers
  CGO_ENABLED=0 go test -c -ldflags '-s -w' -o $out/routers/e2e__routers.test ./e2e/routers
  for room in moe grouped; do
    go test -c -tags cuda -ldflags '-s -w' -o $out/routers/$room.test ./runtime/ops/$room
  done
  go build -tags cuda -ldflags '-s -w' -o $out/routers/opbench ./tools/cuda/opbench
  (cd $out && tar -cf - routers | xz -T1 --lzma2=preset=1,dict=64MiB >on-device-routers.tar.xz)
  rm -rf $out/routers
  say "$(du -h $out/on-device-routers.tar.xz | cut -f1) in $out/on-device-routers.tar.xz"
  exit
fi

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
  for family in ${MTC_FAMILIES:-gpt2 llama mistral qwen2 qwen3}; do
    mt=e2e/testdata/fixtures/$family.mt
    for precision in f32 bf16; do
      at="--target cuda --set train.precision=$precision"
      program "$family.$precision.resident" $mt $at
      program "$family.$precision.micro" $mt $at --micro-batch 1 --groups 1
      program "$family.$precision.stream" $mt $at --placement stream --micro-batch 1
      case $family in
      mistral | qwen2) program "$family.$precision.microgroups" $mt $at --micro-batch 2 --groups 2 ;;
      esac
      program "$family.$precision.groups" $mt $at --placement stream --micro-batch 2 --groups 2 --recompute all --slots 3 --grad-slots 3
    done
  done
  small=(--set train.eval=none)
  [ -z "${MTC_SMALL:-}" ] || small+=(--set "train.batch=2 rows" --set train.seq=32)
  program nano.cpu models/nano.mt "${small[@]}"
  for precision in f32 bf16; do
    at="--target cuda --set train.precision=$precision"
    program "nano.$precision.resident" models/nano.mt $at "${small[@]}"
    program "nano.$precision.stream" models/nano.mt $at "${small[@]}" --placement stream
  done
  at="--target cuda"
  program nano.bf16-noclip.resident models/nano.mt $at "${small[@]}" --set train.clip=none
  program nano.bf16-noclip.stream models/nano.mt $at "${small[@]}" --set train.clip=none --placement stream
  program nano.bf16.mixed models/nano.mt $at "${small[@]}" --placement stream --device-memory "${MTC_MIXED:-1072MiB}"
  # What a stream keeps where.
  many="$at --placement stream --micro-batch 1"
  program nano.bf16.many models/nano.mt $many "${small[@]}"
  program nano.bf16.saved models/nano.mt $many "${small[@]}" --recompute all --save-inputs all
  program nano.bf16.home models/nano.mt $many "${small[@]}" --grad-home device --host-slots 1 --device-weights 1 --save-inputs 1
  program nano.bf16.rounded models/nano.mt $many "${small[@]}" --grad-precision bf16
  program nano.bf16.roundedhome models/nano.mt $many "${small[@]}" --grad-precision bf16 --grad-home 3 --host-slots 1
  program nano.bf16.second models/nano.mt $many "${small[@]}" --recompute all --input-every 2 --grad-home device
  program nano.bf16.groups models/nano.mt $many "${small[@]}" --groups 2 --resident 2
  program nano.wide models/nano.mt $at --placement stream --set D=1024 --set F=4096 --set train.eval=none --set "train.batch=2 rows" --set train.seq=32
  for precision in f32 bf16; do program overflow.$precision tools/cuda/overflow.mt $at --set train.precision=$precision --check-nan; done
  # Little enough for racecheck.
  little=(--set L=1 --set F=128 --set train.eval=none --set train.seq=32 --set "train.batch=2 rows" --placement stream)
  program tiny.bf16 models/nano.mt $at "${little[@]}" --set D=64
  program tiny.bf16.resident models/nano.mt $at "${little[@]}" --set D=64 --placement resident
  program tiny.bf16.wide models/nano.mt $at "${little[@]}" --set D=128 --set H=2 --set KV=1
  program tiny.f32 models/nano.mt $at "${little[@]}" --set D=64 --set train.precision=f32
  program nano.big models/nano.mt $at --set "train.batch=64 rows"
  tiny=(--set train.seq=64 --set "train.batch=4 rows" --set train.eval=none)
  if [ -z "${MTC_SMALL:-}" ]; then
    program gpt2-124m.f32.resident models/gpt2.mt $at --set train.precision=f32 "${tiny[@]}"
    program gpt2-124m.bf16.resident models/gpt2.mt $at "${tiny[@]}"
    program gpt2-124m.bf16.stream models/gpt2.mt $at "${tiny[@]}" --placement stream
  fi
  rm -rf $out/src
  # Stands for a driver that is old, sees no GPU, or has one with little memory.
  mkdir -p $out/fake
  gcc -O1 -shared -fPIC -Wl,-soname,libcuda.so.1 -o $out/fake/libcuda.so.1 runtime/device/cuda/emu/standin/driver.c -lpthread -ldl
  say "$(ls $out/programs | wc -l) programs"
fi

# One archive: the binaries share most of their bytes.
(cd $out && tar -cf - $(ls -d tests programs fake 2>/dev/null) | xz -T1 --lzma2=preset=1,dict=64MiB >on-device.tar.xz)
say "$(du -h $out/on-device.tar.xz | cut -f1) in $out/on-device.tar.xz"
