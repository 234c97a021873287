#!/usr/bin/env bash
# CUDA graphs change no bit, and what they gain:
#
#   tools/cuda/graphs.sh build              small programs of every kind, and large ones to time, in build/cuda/graphs.tar.xz
#   tools/cuda/graphs.sh bits               each small program with graphs and without: the same weights, moments and losses
#   tools/cuda/graphs.sh time [NAME:STEPS]  large ones with and without, in turns: losses and the time of a step
#
# MTC_OUT is another folder than build/cuda. `build small` leaves out the large ones. bits and time run on a machine with a GPU,
# Python and numpy; with MTC_EMU=1 bits runs over tools/cuda/emu.sh. A table comes last.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${MTC_OUT:-build/cuda}

build() {
  . tools/cuda/env.sh
  rm -rf "$out/graphs" && mkdir -p "$out/graphs"
  CGO_ENABLED=0 go build -o "$out/graphs-mtc" ./cmd/mtc
  program() { # name, .mt, flags
    "$out/graphs-mtc" compile "$2" -o "$out/graphs/src" --target cuda "${@:3}" >/dev/null
    find "$out/graphs/src" -maxdepth 1 -type f -perm -u+x -exec mv {} "$out/graphs/$1" \;
    strip "$out/graphs/$1"
    rm -rf "$out/graphs/src"
  }
  nano() { program "$1" models/nano.mt --set L=3 --set D=64 --set F=128 --set train.seq=32 --set "train.batch=4 rows" --set train.eval="every(3, batches = 2)" "${@:2}"; }
  local many="--placement stream --micro-batch 1" kind models=e2e/invariants/testdata/models
  nano small.resident
  nano small.noclip --set train.clip=none
  nano small.f32 --set train.precision=f32 --micro-batch 2
  nano small.nan --check-nan
  nano small.stream --placement stream
  nano small.stream-noclip $many --set train.clip=none
  nano small.slots $many --recompute all --slots 3 --grad-slots 3
  nano small.groups $many --groups 2
  nano small.saved $many --recompute all --save-inputs all
  nano small.home $many --grad-home device --host-slots 1 --device-weights 1 --save-inputs 1
  nano small.second $many --recompute all --input-every 2 --grad-home device
  nano small.rounded $many --grad-precision bf16
  nano small.mixed $many --resident 'layer[0]'
  for kind in topk choice threshold window; do
    program small.$kind $models/$kind.mt --micro-batch 4
    program small.$kind-stream $models/$kind.mt $many
  done
  for kind in resident stream; do program small.lora-$kind $models/lora.mt --micro-batch 4 --placement $kind; done
  cp -r runtime/hf/testdata/llama3 "$out/graphs/base"
  if [ "${1:-}" != small ]; then
    tools/cuda/bench.sh build gpt2-8192 gpt2-524288 7b-resident-4 7b-stream-16 moe-d12 >/dev/null
    mv build/cuda/bench/{gpt2,7b,moe}-* "$out/graphs/"
  fi
  (cd "$out" && tar -cf - graphs | xz -T1 --lzma2=preset=1,dict=64MiB >graphs.tar.xz)
  du -h "$out/graphs.tar.xz"
}

unpack() {
  OUT=${OUT:-$PWD/$out/out}
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$OUT"
  python3 -c "import lzma, tarfile; tarfile.open(fileobj=lzma.open('$out/graphs.tar.xz')).extractall('$work')"
  export XDG_CACHE_HOME=$work/cache
}

# once NAME RUN GRAPHS STEPS ARGS...: a run of a small program, with graphs or without.
once() {
  local name=$1 run=$work/$2
  local data=(--data "$work/text.txt")
  case $name in small.lora-*) data=(--from "$work/graphs/base" --data "$work/ids.bin") ;; esac
  MTC_CUDA_GRAPHS=$3 timeout -k 5 ${MTC_EMU:+9}99 ${MTC_EMU:+tools/cuda/emu.sh} "$work/graphs/$name" "${data[@]}" --eval-data "$work/eval.${data[-1]##*.}" --save-every 0 --out "$run" --steps "$4" "${@:5}" >"$run.log" 2>&1 ||
    { echo "$name: exit $?"; tail -3 "$run.log"; return 1; }
}

equal() { # two runs
  local f
  for f in weights optimizer; do cmp "$work/$1/step-000008/$f.safetensors" "$work/$2/step-000008/$f.safetensors" || return 1; done
  cmp <(grep -o '"\(loss\|grad_norm\|eval_loss\)":[^,}]*' "$work/$1/metrics.jsonl") <(grep -o '"\(loss\|grad_norm\|eval_loss\)":[^,}]*' "$work/$2/metrics.jsonl")
}

pair() { once "$1" "$1.off" 0 8 && once "$1" "$1.on" 1 8 && equal "$1.off" "$1.on"; }

# The other ways through a run: timed steps, and a stop in the middle.
profiled() { once "$1" "$1.profiled" 1 8 --profile=2 && equal "$1.off" "$1.profiled"; }
stopped() {
  once "$1" "$1.stopped" 1 8 --save-every 4 && rm -rf "$work/$1.stopped/step-000008" && once "$1" "$1.stopped" 1 8 --resume || return 1
  cmp "$work/$1.off/step-000008/weights.safetensors" "$work/$1.stopped/step-000008/weights.safetensors"
}
refused() { # on a stand-in for the driver that has no memory for a graph when it is launched
  MTC_FAKE_CUDA=graphlate once "$1" "$1.refused" 1 8 && equal "$1.off" "$1.refused" && [ "$(tr -s ' \n' ' ' <"$work/$1.refused.log" | grep -o 'launched one by one' | wc -l)" = 1 ]
}

bits() {
  unpack
  local name failed=0
  python3 tools/cuda/text.py 40000 >"$work/text.txt"
  python3 -c "open('$work/ids.bin', 'wb').write(b''.join((i * i % 48).to_bytes(2, 'little') for i in range(9000)))"
  head -c 5000 "$work/text.txt" >"$work/eval.txt"
  head -c 3000 "$work/ids.bin" >"$work/eval.bin"
  row() { # label, command
    local began=$SECONDS note
    if note=$("${@:2}" 2>&1); then note=ok; else note="FAIL $note" failed=1; fi
    printf '%-36s %4d s  %s\n' "$1" $((SECONDS - began)) "$note" | tee -a "$OUT/graphs.txt"
  }
  : >"$OUT/graphs.txt"
  for name in "$work"/graphs/small.*; do
    name=$(basename "$name")
    [[ -z ${ONLY:-} || $name =~ $ONLY ]] || continue
    row "$name" pair "$name"
  done
  for name in small.resident small.stream; do
    [[ -z ${ONLY:-} || $name =~ $ONLY ]] || continue
    row "$name, steps timed" profiled $name
    row "$name, stopped and gone on" stopped $name
    [ -z "${MTC_EMU:-}" ] || row "$name, a driver without" refused $name
  done
  [ $failed = 0 ] && echo "the same bits with graphs and without"
}

time_them() {
  unpack
  local what name steps vocab
  [ $# -gt 0 ] || set -- gpt2-8192:80 gpt2-524288:9 moe-d12:6 7b-resident-4:16 7b-stream-16:6
  for what; do
    name=${what%:*} steps=${what#*:} vocab=50257
    case $name in moe*) vocab=256 ;; esac
    timeout 200 python3 tools/cuda/variants.py --turns 1 --steps "$steps" --skip $((steps > 20 ? 10 : 3)) --vocab $vocab "$work/graphs/$name" - MTC_CUDA_GRAPHS=0 || true
  done | tee "$OUT/graphs-time.txt"
}

case ${1:-} in
build) build "${2:-}" ;;
bits) bits ;;
time) time_them "${@:2}" ;;
*) echo "usage: tools/cuda/graphs.sh build|bits|time" >&2; exit 2 ;;
esac
