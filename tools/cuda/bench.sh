#!/usr/bin/env bash
# Training steps on a GPU, timed beside what others reach:
#
#   tools/cuda/bench.sh build [NAME...] programs, all or those named, packed in build/cuda/bench.tar.xz; needs no GPU
#   tools/cuda/bench.sh run [NAME...]   times them, or those named; needs no Go
#
# `make bench-gpu` is the first part, and the second where there is a GPU. The models are those
# of models/ with a constant lr and no evaluation; the data is random.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=build/cuda
case ${1:-} in
build)
  shift
  names=" $* "
  ;;
run)
  shift
  exec python3 tools/cuda/bench.py "$@"
  ;;
*)
  echo "usage: tools/cuda/bench.sh build|run" >&2
  exit 2
  ;;
esac

. tools/cuda/env.sh
dir=$out/bench src=$out/bench-src
rm -rf $dir $src && mkdir -p $dir $src
cp models/llama.mt $src/
for m in gpt2 qwen2.5-7b; do
  sed -e '/^  eval  /d' -e '/^  save  /d' -e 's/^  lr  .*/  lr = constant(peak = 1e-5)/' models/$m.mt >$src/$m.mt
done
# Thresholds that warm up causally: the published warm-up needs the logits of a whole step at once.
sed -e 's/warmup = expert_choice([^)]*)/warmup = causal(steps = 100)/' -e '/^  eval  /d' -e '/^  save  /d' \
  -e 's/^  lr  .*/  lr = constant(peak = 1e-5)/' models/et_moe.mt >$src/et_moe.mt
CGO_ENABLED=0 go build -o $out/mtc ./cmd/mtc
program() { # name, model, tokens of a step, flags
  local name=$1 model=$2 tokens=$3
  shift 3
  [[ $names == "  " || $names == *" $name "* ]] || return 0
  echo "$name"
  $out/mtc compile $src/$model.mt --target cuda --mtc-source "$PWD" -o $src/$name --set train.seq=${seq:-1024} --set "train.batch=$tokens tokens" "$@" |
    sed -n 's/^  memory/ &/p'
  find $src/$name -maxdepth 1 -type f -perm -u+x -exec mv {} $dir/$name \;
  strip $dir/$name 2>/dev/null || true
}
program gpt2-524288 gpt2 524288 --micro-batch 64 --groups 8
program gpt2-65536 gpt2 65536 --micro-batch 64
program gpt2-8192 gpt2 8192
stream="--placement stream --recompute all"
program 7b-stream-64 qwen2.5-7b 65536 $stream --device-memory 40GiB
program 7b-stream-64-noclip qwen2.5-7b 65536 $stream --device-memory 40GiB --set train.clip=none
program 7b-stream-16 qwen2.5-7b 16384 $stream --device-memory 40GiB
program 7b-stream-16-noclip qwen2.5-7b 16384 $stream --device-memory 40GiB --set train.clip=none
program 7b-stream-158 qwen2.5-7b 161792 $stream --device-memory 44GiB
program 7b-stream-64-24 qwen2.5-7b 65536 $stream --device-memory 24GiB
# Groups of one micro-batch: nothing is computed twice, and activations of one are alive.
program 7b-resident-64 qwen2.5-7b 65536 --micro-batch 4 --groups 16
program 7b-resident-16 qwen2.5-7b 16384 --micro-batch 4 --groups 4
program 7b-resident-4 qwen2.5-7b 4096 --micro-batch 4
program 7b-mixed-64 qwen2.5-7b 65536 $stream --device-memory 120GiB
seq=2048 program moe-d12 et_moe 524288 --micro-batch 32 --groups 8
go build -tags cuda -ldflags '-s -w' -o $dir/opbench ./tools/cuda/opbench
rm -rf $src
(cd $out && tar -cf - bench | xz -T1 --lzma2=preset=1,dict=64MiB >bench.tar.xz)
echo "$(du -h $out/bench.tar.xz | cut -f1) in $out/bench.tar.xz"
